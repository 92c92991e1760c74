package weir

import (
	"errors"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// outbox holds what is to be done without the client's lock: datagrams to write,
// callers to wake after that, sockets that are let go of.
type outbox struct {
	datagrams []udp.Datagram
	posts     []post // of the datagrams, index by index
	failed    []failure
	wake      []*call
	hangUp    []*socket // to close in any case
	retired   []*socket // that are no link's any more

	// What the core writes into.
	send  core.Send
	event core.Event
}

// post is where a datagram goes out, until when it may, and what the core calls
// it.
type post struct {
	socket *socket
	until  time.Duration
	ref    core.SendRef
}

// errStalled is why a datagram was not written: what it belongs to had ended
// before this goroutine got to it.
var errStalled = errors.New("weir: the program stalled beyond the request's horizon before the datagram was written")

// failure is a datagram that could not be sent.
type failure struct {
	ref core.SendRef
	err error
}

func (c *Client) getOutbox() *outbox {
	if ob, ok := c.outboxes.Get().(*outbox); ok {
		return ob
	}
	return new(outbox)
}

// slot returns the place for the next datagram; it is taken by adding a post.
func (ob *outbox) slot() *udp.Datagram {
	n := len(ob.posts)
	if n == len(ob.datagrams) {
		ob.datagrams = append(ob.datagrams, udp.Datagram{Buf: make([]byte, 0, wire.MaxDatagram)})
	}
	return &ob.datagrams[n]
}

// flush does what ob holds, and what follows from sends that fail, and gives ob
// back. It is called without the lock.
func (c *Client) flush(ob *outbox) {
	c.discharge(ob)
	ob.event = core.Event{}
	c.outboxes.Put(ob)
}

func (c *Client) discharge(ob *outbox) {
	for {
		ob.write(c.clock)
		for _, k := range ob.wake {
			k.done <- struct{}{}
		}
		for _, s := range ob.hangUp {
			s.conn.Close()
		}
		for _, s := range ob.retired {
			s.release()
		}
		clear(ob.wake)
		clear(ob.hangUp)
		clear(ob.retired)
		ob.wake, ob.hangUp, ob.retired = ob.wake[:0], ob.hangUp[:0], ob.retired[:0]
		if len(ob.failed) == 0 {
			return
		}
		now := c.clock()
		c.mu.Lock()
		for _, f := range ob.failed {
			c.core.HandleSendFailure(now, f.ref, f.err)
		}
		clear(ob.failed)
		ob.failed = ob.failed[:0]
		c.settle(now, ob)
		c.mu.Unlock()
	}
}

// write sends the datagrams, neighbors of one socket in one call, and notes
// those that could not be sent. The core has judged by the time of its call; time
// has passed since, a lot of it if the process was stopped in between, or if there was no room for many.
func (ob *outbox) write(clock func() core.Time) {
	const most = 128 // between two looks at the clock: a system call of them
	for i := 0; i < len(ob.posts); {
		s := ob.posts[i].socket
		now := clock().Mono
		if now >= ob.posts[i].until {
			ob.failed = append(ob.failed, failure{ob.posts[i].ref, errStalled})
			i++
			continue
		}
		end := i + 1
		for end < min(len(ob.posts), i+most) && ob.posts[end].socket == s && now < ob.posts[end].until {
			end++
		}
		n, err := s.conn.Write(ob.datagrams[i:end])
		i += n
		if err != nil {
			ob.failed = append(ob.failed, failure{ob.posts[i].ref, err})
			i++
		}
	}
	for i := range ob.posts {
		ob.posts[i].socket.release()
		ob.posts[i] = post{}
	}
	ob.posts = ob.posts[:0]
}
