package udp

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A Network is a packet network in memory. Datagrams between its hosts arrive
// in the order sent and at once, unless [Network.SetLink] says otherwise. It
// waits on nothing but sync.Cond and time.AfterFunc, so that under
// testing/synctest its time is virtual. It is safe for concurrent use.
type Network struct {
	mu    sync.Mutex
	hosts []*NetworkHost
	link  func(Packet) Fate
}

// A Packet is a datagram under way, as a link sees it.
type Packet struct {
	From, To netip.AddrPort
	Payload  []byte // only valid during the call
}

// A Fate is what becomes of a packet. The zero value delivers it at once.
type Fate struct {
	Delay  time.Duration // until it arrives
	Drop   bool          // it never arrives, and the sender does not learn it
	Copies int           // how often more it arrives, at the same instant
	Err    error         // the sender's Write fails with it and nothing is sent
}

// NewNetwork returns a network without hosts.
func NewNetwork() *Network { return new(Network) }

// Host adds a machine with the given addresses, which must be valid, specific
// and no other host's; it panics otherwise. Wildcard sockets receive on all of
// the addresses of their family and send from the first.
func (n *Network) Host(addrs ...netip.Addr) *NetworkHost {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range addrs {
		if !a.IsValid() || a.IsUnspecified() || n.owner(a) != nil {
			panic("udp: " + a.String() + " cannot be a new host's address")
		}
	}
	h := &NetworkHost{net: n, addrs: slices.Clone(addrs)}
	n.hosts = append(n.hosts, h)
	return h
}

// SetLink sets the function that decides every later packet's fate; nil
// delivers all. It is called with the network locked, one packet at a time, and
// must not use the network.
func (n *Network) SetLink(link func(Packet) Fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link = link
}

// send is called with n locked.
func (n *Network) send(from, to netip.AddrPort, payload []byte) error {
	var f Fate
	if n.link != nil {
		f = n.link(Packet{From: from, To: to, Payload: payload})
	}
	if f.Err != nil || f.Drop {
		return f.Err
	}
	payload = slices.Clone(payload)
	if f.Delay <= 0 {
		n.arrive(from, to, payload, f.Copies)
		return nil
	}
	time.AfterFunc(f.Delay, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.arrive(from, to, payload, f.Copies)
	})
	return nil
}

// arrive is called with n locked. What nobody listens for is lost.
func (n *Network) arrive(from, to netip.AddrPort, payload []byte, copies int) {
	h := n.owner(to.Addr())
	if h == nil {
		return
	}
	c := h.bound(from, to)
	if c == nil {
		return
	}
	for range 1 + copies {
		c.enqueue(from, to.Addr(), payload)
	}
}

func (n *Network) owner(a netip.Addr) *NetworkHost {
	for _, h := range n.hosts {
		if slices.Contains(h.addrs, a) {
			return h
		}
	}
	return nil
}
