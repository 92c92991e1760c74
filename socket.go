package weir

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// family is an address family; a client has at most one current socket of each.
type family int

const (
	ipv4 family = iota
	ipv6
	families
)

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return ipv4
	}
	return ipv6
}

// link is how a family is reached.
type link struct {
	current *socket // where new sends leave from; nil until one is needed
	err     error   // why there is none
	retry   time.Duration
}

// socket is one UDP socket and who still needs it: its link while it is the
// current one, every undecided request that was sent from it, and every datagram
// that is being written. Without its last use it is closed.
type socket struct {
	id   core.SocketID
	conn udp.Conn
	uses atomic.Int32
}

func (s *socket) hold() { s.uses.Add(1) }

func (s *socket) release() {
	if s.uses.Add(-1) == 0 {
		s.conn.Close() // its reader ends
	}
}

// openRetry is how long a family is left alone after its socket could not be
// opened: every send to it fails meanwhile.
const openRetry = time.Second

// post notes that the datagram in ob's slot is to be written. It is called with
// the lock held.
func (c *Client) post(now core.Time, ob *outbox) {
	ref := ob.send.Ref
	s, err := c.socketTo(now, ob.send.To.Addr())
	if err != nil {
		ob.failed = append(ob.failed, failure{ref, err})
		return
	}
	s.hold()
	ob.posts = append(ob.posts, post{s, ob.send.Until, ref})
	if ref.Kind == core.SendFirst || ref.Kind == core.SendReplay {
		if k := c.calls[ref.Request]; k != nil {
			k.sentFrom(s)
		}
	}
}

// socketTo returns the current socket of an address's family and opens it if
// need be. It is called with the lock held.
func (c *Client) socketTo(now core.Time, a netip.Addr) (*socket, error) {
	f := familyOf(a)
	l := &c.links[f]
	if l.current != nil {
		return l.current, nil
	}
	if l.err != nil && now.Mono < l.retry {
		return nil, l.err
	}
	conn, err := c.stack.Listen(wildcard(f), c.socketOptions())
	if err != nil {
		l.err, l.retry = fmt.Errorf("open a socket: %w", err), now.Mono+openRetry
		return nil, l.err
	}
	l.current, l.err = c.adopt(conn), nil
	return l.current, nil
}

// adopt makes a socket of conn and begins to read it. It is called with the lock
// held. The socket has one use, the caller's.
func (c *Client) adopt(conn udp.Conn) *socket {
	c.opened++
	s := &socket{id: c.opened, conn: conn}
	s.hold()
	c.sockets[s.id] = s
	c.wg.Go(func() { c.read(s) })
	return s
}

func (c *Client) socketOptions() udp.Options {
	const servers = 4 // as many as send bursts at one time
	return udp.Options{ReadBuffer: c.socketBuffer, WriteBuffer: c.socketBuffer, Bursts: c.bursts, BurstBuffers: servers}
}

// wildcard returns the unspecified address of a family, port 0.
func wildcard(f family) netip.AddrPort {
	if f == ipv4 {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
}

const (
	readBatch = 16
	// readSpace is one more than the longest datagram, so that one that is too
	// long is seen to be.
	readSpace = wire.MaxDatagram + 1
	// readPause is how long a reader waits after an error when so many came in a
	// row, so that a socket that does nothing but fail does not turn it into a
	// busy loop. Single errors (a dead server's ICMP messages, on some systems)
	// hold up nobody's answer.
	readPause       = 5 * time.Millisecond
	readErrorsInRow = 16
)

// read is a socket's goroutine: it hands in what arrives, until the socket is
// closed. Other errors (an ICMP message, no memory) pass.
func (c *Client) read(s *socket) {
	defer c.forget(s)
	ds := newDatagrams()
	for failed := 0; ; {
		n, err := s.conn.Read(ds)
		if n > 0 {
			failed = 0
			c.receive(s, ds[:n], c.arrivals.arrive())
			continue
		}
		if udp.Closed(err) {
			return
		}
		c.readErrors.Add(1)
		if failed++; failed < readErrorsInRow {
			continue
		}
		select {
		case <-time.After(readPause):
		case <-c.ctx.Done():
			return
		}
	}
}

// newDatagrams returns the space that a reader reads into.
func newDatagrams() []udp.Datagram {
	ds := make([]udp.Datagram, readBatch)
	for i := range ds {
		ds[i].Buf = make([]byte, readSpace)
	}
	return ds
}

// receive hands in datagrams, for which their reader has joined a group of the
// arrivals, then runs the timers that are due.
func (c *Client) receive(s *socket, ds []udp.Datagram, group uint32) {
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	for i := range ds {
		c.core.HandleDatagram(now, s.id, ds[i].Payload())
	}
	c.arrivals.leave(group)
	c.runTimers(now)
	c.settle(now, ob)
	c.mu.Unlock()
	c.flush(ob)
}

func (c *Client) forget(s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sockets, s.id)
}
