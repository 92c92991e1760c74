package weir

import "github.com/weirhq/weir/internal/udp"

// ahead is what the timer's goroutine reads with.
type ahead struct {
	sockets   []*socket
	datagrams []udp.Datagram
}

func newAhead() *ahead { return &ahead{datagrams: newDatagrams()} }

// aheadBatches bounds how often a socket is read before the timers that are due
// have to fire, so that a flood does not put them off.
const aheadBatches = 64

// readAhead hands in what the sockets have, before timers fire. It is the readers'
// work, but they wait for the network, by way of one thread of the program: on a
// machine with too few processors that one may get none for longer than a request
// has, while timers go off on time elsewhere.
func (c *Client) readAhead(a *ahead) {
	c.mu.Lock()
	_, probing := c.core.FailFast()
	if len(c.calls) > 0 || probing { // else nobody waits for an answer
		for _, s := range c.sockets {
			a.sockets = append(a.sockets, s)
		}
	}
	c.mu.Unlock()
	for _, s := range a.sockets {
		for range aheadBatches {
			n := s.conn.ReadAhead(a.datagrams)
			if n == 0 {
				break
			}
			c.handIn(s, a.datagrams[:n])
		}
	}
	clear(a.sockets)
	a.sockets = a.sockets[:0]
}

// handIn hands in datagrams.
func (c *Client) handIn(s *socket, ds []udp.Datagram) {
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	for i := range ds {
		c.core.HandleDatagram(now, s.id, ds[i].Payload())
	}
	c.settle(now, ob)
	c.mu.Unlock()
	c.flush(ob)
}
