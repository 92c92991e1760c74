package udp

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// A NetworkHost is one machine of a [Network]. It is a [Stack].
type NetworkHost struct {
	net   *Network
	addrs []netip.Addr
	conns []*networkConn // open ones
	next  uint16         // where the search for a free port goes on
}

// queueLength is how many datagrams a socket of a Network holds before it
// drops, like the kernel, what comes.
const queueLength = 4096

// firstEphemeral is where the ports that a host chooses begin: outside the
// steering range, as on Linux.
const firstEphemeral = 32768

// Listen implements [Stack]. All that options ask for is always on, buffer sizes
// mean nothing.
func (h *NetworkHost) Listen(addr netip.AddrPort, _ Options) (Conn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if !h.has(addr.Addr()) {
		return nil, fmt.Errorf("listen %v: %w", addr, ErrNotLocal)
	}
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), h.freePort(addr.Addr()))
	}
	if h.conflict(addr) {
		return nil, fmt.Errorf("listen %v: %w", addr, errInUse)
	}
	c := &networkConn{host: h, local: addr}
	c.arrived.L = &h.net.mu
	h.conns = append(h.conns, c)
	return c, nil
}

// listenGroup implements [ListenGroup].
func (h *NetworkHost) listenGroup(addr netip.AddrPort, n int, o Options) ([]Conn, error) {
	first, err := h.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	group := []Conn{first}
	for len(group) < n {
		c := &networkConn{host: h, local: first.LocalAddr()}
		c.arrived.L = &h.net.mu
		h.conns = append(h.conns, c)
		group = append(group, c)
	}
	return group, nil
}

// Ports returns the ports of the open sockets, ascending, each once.
func (h *NetworkHost) Ports() []uint16 {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	var ps []uint16
	for _, c := range h.conns {
		ps = append(ps, c.local.Port())
	}
	slices.Sort(ps)
	return slices.Compact(ps)
}

func (h *NetworkHost) has(a netip.Addr) bool {
	if a.IsUnspecified() {
		return h.source(a).IsValid()
	}
	return slices.Contains(h.addrs, a)
}

// source is the first address of a's family, or the zero Addr.
func (h *NetworkHost) source(a netip.Addr) netip.Addr {
	for _, own := range h.addrs {
		if own.Is4() == a.Is4() {
			return own
		}
	}
	return netip.Addr{}
}

func (h *NetworkHost) freePort(a netip.Addr) uint16 {
	for {
		if h.next < firstEphemeral || h.next >= FirstSteeringPort {
			h.next = firstEphemeral
		}
		p := h.next
		h.next++
		if !h.conflict(netip.AddrPortFrom(a, p)) {
			return p
		}
	}
}

// conflict: two sockets of a family share no port if their addresses are the
// same or one of them is unspecified.
func (h *NetworkHost) conflict(addr netip.AddrPort) bool {
	return slices.ContainsFunc(h.conns, func(c *networkConn) bool {
		own := c.local.Addr()
		return c.local.Port() == addr.Port() && own.Is4() == addr.Addr().Is4() &&
			(own == addr.Addr() || own.IsUnspecified() || addr.Addr().IsUnspecified())
	})
}

// bound returns the socket that a datagram goes to. Of a group it is always the same
// one for a flow.
func (h *NetworkHost) bound(from, to netip.AddrPort) *networkConn {
	var group []*networkConn
	for _, c := range h.conns {
		own := c.local.Addr()
		if c.local.Port() == to.Port() && (own == to.Addr() || own.IsUnspecified() && own.Is4() == to.Addr().Is4()) {
			group = append(group, c)
		}
	}
	switch len(group) {
	case 0:
		return nil
	case 1:
		return group[0]
	}
	flow := fnv.New32a()
	fmt.Fprint(flow, from, to)
	return group[flow.Sum32()%uint32(len(group))]
}

type networkConn struct {
	host    *NetworkHost
	local   netip.AddrPort
	arrived sync.Cond // on the network's lock
	queue   []Datagram
	dropped uint64
	closed  bool
	until   time.Time   // the read deadline; zero means none
	alarm   *time.Timer // wakes who waits then
}

func (c *networkConn) enqueue(from netip.AddrPort, local netip.Addr, payload []byte) {
	if len(c.queue) == queueLength {
		c.dropped++
		return
	}
	c.queue = append(c.queue, Datagram{Buf: payload, N: len(payload), Peer: from, Local: local, Received: time.Now().UnixNano()})
	c.arrived.Signal()
}

func (c *networkConn) Read(ds []Datagram) (int, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	for len(c.queue) == 0 && !c.closed && !c.late() {
		c.arrived.Wait()
	}
	if c.closed {
		return 0, fmt.Errorf("udp: read %v: %w", c.local, net.ErrClosed)
	}
	if c.late() {
		return 0, fmt.Errorf("udp: read %v: %w", c.local, os.ErrDeadlineExceeded)
	}
	return c.take(ds), nil
}

// take is called with the network locked.
func (c *networkConn) take(ds []Datagram) int {
	n := min(len(ds), len(c.queue))
	for i := range n {
		d, q := &ds[i], &c.queue[i]
		d.N = copy(d.Buf, q.Payload())
		d.Peer, d.Local, d.Received = q.Peer, q.Local, q.Received
	}
	c.queue = slices.Delete(c.queue, 0, n)
	return n
}

func (c *networkConn) ReadReady(ds []Datagram) (int, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return 0, fmt.Errorf("udp: read %v: %w", c.local, net.ErrClosed)
	}
	return c.take(ds), nil
}

func (c *networkConn) ReadAhead(ds []Datagram) int {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	return c.take(ds)
}

func (c *networkConn) Write(ds []Datagram) (int, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	for i := range ds {
		if err := c.writeOne(&ds[i]); err != nil {
			return i, fmt.Errorf("udp: write %v to %v: %w", c.local, ds[i].Peer, err)
		}
	}
	return len(ds), nil
}

func (c *networkConn) writeOne(d *Datagram) error {
	if c.closed {
		return net.ErrClosed
	}
	src := c.local.Addr()
	if src.IsUnspecified() {
		src = c.host.source(src)
		if d.Local.IsValid() {
			src = d.Local
		}
	}
	if src.Is4() != d.Peer.Addr().Is4() || !slices.Contains(c.host.addrs, src) {
		return ErrNoRoute
	}
	return c.host.net.send(netip.AddrPortFrom(src, c.local.Port()), d.Peer, d.Payload())
}

func (c *networkConn) Bursts() (in, out uint64, able bool) { return 0, 0, false }

func (c *networkConn) Pending() bool {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	return len(c.queue) > 0
}

func (c *networkConn) Dropped() uint64 {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	return c.dropped
}

func (c *networkConn) ReadBuffer() int { return 0 }

func (c *networkConn) SetReadDeadline(t time.Time) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return fmt.Errorf("udp: set the deadline of %v: %w", c.local, net.ErrClosed)
	}
	c.dismiss()
	c.until = t
	if wait := time.Until(t); t.IsZero() || wait <= 0 {
		c.arrived.Broadcast()
	} else {
		c.alarm = time.AfterFunc(wait, func() {
			c.host.net.mu.Lock()
			defer c.host.net.mu.Unlock()
			c.arrived.Broadcast()
		})
	}
	return nil
}

// late reports whether the read deadline has passed. It is called with the
// network locked.
func (c *networkConn) late() bool { return !c.until.IsZero() && !time.Now().Before(c.until) }

// dismiss takes the alarm back. It is called with the network locked.
func (c *networkConn) dismiss() {
	if c.alarm != nil {
		c.alarm.Stop()
		c.alarm = nil
	}
}

func (c *networkConn) LocalAddr() netip.AddrPort { return c.local }

func (c *networkConn) Close() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return fmt.Errorf("udp: close %v: %w", c.local, net.ErrClosed)
	}
	c.closed = true
	c.queue = nil
	c.dismiss()
	c.host.conns = slices.DeleteFunc(c.host.conns, func(o *networkConn) bool { return o == c })
	c.arrived.Broadcast()
	return nil
}
