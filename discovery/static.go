package discovery

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/ident"
)

// Server is one r-server of a membership that is configured by hand.
type Server struct {
	ID    ident.ServerID
	Addrs []netip.AddrPort // at least one, in the order given, without duplicates
}

// ParseServer reads "id@ip:port[,ip:port…]", for example
// "1015809@192.0.2.1:29292,[2001:db8::1]:29292". The ID is the server's, in
// decimal: a client takes answers from no other (docs/protocol.md,
// "Discovery"). Addresses are IP literals; those that nobody can be reached at
// (port 0, unspecified, multicast, broadcast) are refused.
func ParseServer(s string) (Server, error) {
	id, addrs, ok := strings.Cut(s, "@")
	if !ok {
		return Server{}, fmt.Errorf("discovery: server %q has no ID; write id@ip:port", s)
	}
	sid, err := ident.ParseServerID(id)
	if err != nil {
		return Server{}, fmt.Errorf("discovery: server %q: %w", s, err)
	}
	srv := Server{ID: sid}
	for part := range strings.SplitSeq(addrs, ",") {
		a, err := parseEndpoint(strings.TrimSpace(part))
		if err != nil {
			return Server{}, fmt.Errorf("discovery: server %q: %w", s, err)
		}
		if slices.Contains(srv.Addrs, a) {
			return Server{}, fmt.Errorf("discovery: server %q names %v twice", s, a)
		}
		srv.Addrs = append(srv.Addrs, a)
	}
	return srv, nil
}

// String returns the text that [ParseServer] reads.
func (s Server) String() string {
	parts := make([]string, len(s.Addrs))
	for i, a := range s.Addrs {
		parts[i] = a.String()
	}
	return s.ID.String() + "@" + strings.Join(parts, ",")
}

func parseEndpoint(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not an IP address with a port, such as 192.0.2.1:29292 or [2001:db8::1]:29292", s)
	}
	ip := a.Addr().Unmap()
	switch {
	case a.Port() == 0:
		return netip.AddrPort{}, fmt.Errorf("%q has port 0; give the port that the server listens on", s)
	case ip.IsUnspecified():
		return netip.AddrPort{}, fmt.Errorf("%q is the unspecified address; give one that clients can reach", s)
	case ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return netip.AddrPort{}, fmt.Errorf("%q is a multicast or broadcast address; give the server's own", s)
	}
	return netip.AddrPortFrom(ip, a.Port()), nil
}
