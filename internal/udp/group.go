package udp

import "net/netip"

// groupStack is a [Stack] that spreads the datagrams to one port over several sockets.
type groupStack interface {
	Stack
	listenGroup(addr netip.AddrPort, n int, o Options) ([]Conn, error)
}

// ListenGroup binds up to n sockets to one address and port, over which the system
// spreads what comes: the datagrams of one flow (a peer's address and port, and ours)
// all go to one of them. Where the system does not do that (it does on Linux) there is
// one socket. Port 0 is one port for all. [Options.ReadBuffer] is what they have together,
// the same for each.
//
// The port must be nobody's, as for [Stack.Listen], and is exclusive to the group as far
// as plain binds go: the first socket is bound plainly, and only then allows others
// beside it, so that there is no moment in which the port is free or two groups can both
// have it. What the system cannot keep out is another program of the same user that asks
// to share the port (SO_REUSEPORT) from the beginning.
func ListenGroup(s Stack, addr netip.AddrPort, n int, o Options) ([]Conn, error) {
	if g, ok := s.(groupStack); ok && n > 1 {
		return g.listenGroup(addr, n, o)
	}
	c, err := s.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	return []Conn{c}, nil
}
