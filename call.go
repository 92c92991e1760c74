package weir

import (
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/wire"
)

// call is one Acquire that is under way. Its fields belong to the caller until
// the request is submitted and after done has been received from, to whoever has
// the client's lock in between.
type call struct {
	id        core.RequestID
	guards    []wire.Guard // what is asked, in arrays that are kept from call to call
	resources []wire.Resource
	sockets   []*socket // that it was sent from
	decision  Decision
	err       error
	done      chan struct{} // one message: the call has ended
}

func (c *Client) getCall() *call {
	if k, ok := c.spares.Get().(*call); ok {
		return k
	}
	return &call{done: make(chan struct{}, 1)}
}

// putCall keeps k for another call, without what it refers to.
func (c *Client) putCall(k *call) {
	clear(k.sockets)
	*k = call{
		guards:    k.guards[:0],
		resources: k.resources[:0],
		sockets:   k.sockets[:0],
		done:      k.done,
	}
	c.spares.Put(k)
}

// encode takes over what a request asks, but for its label.
func (k *call) encode(resources []Resource, guards []Guard, l wire.Layout) error {
	var err error
	k.guards, k.resources, err = appendBlocks(k.guards, k.resources, resources, guards, l)
	if err != nil {
		return err
	}
	k.decision.ask(resources, guards)
	return nil
}

// sentFrom keeps s open until the call has ended.
func (k *call) sentFrom(s *socket) {
	for _, known := range k.sockets {
		if known == s {
			return
		}
	}
	s.hold()
	k.sockets = append(k.sockets, s)
}

// complete ends the call with what the core made of it.
func (k *call) complete(c *core.Completion) { k.err = k.decision.conclude(c) }

// fail ends the call with an error.
func (k *call) fail(err error) { k.err = err }

// releaseSockets lets go of the sockets that the call was sent from.
func (k *call) releaseSockets() {
	for _, s := range k.sockets {
		s.release()
	}
}
