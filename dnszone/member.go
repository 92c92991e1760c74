package dnszone

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weirhq/weir/ident"
)

// Bounds on what a zone holds. They keep every answer under the 64 KiB of a DNS
// message; clients take 16 servers and 4 addresses of each by default.
const (
	MaxRecords        = 128 // SRV records: one per member and port
	MaxMemberAddrs    = 16  // addresses (without port) of one member
	maxMemberEndpoint = 64
)

// Member is one r-server as the zone lists it.
type Member struct {
	ID ident.ServerID
	// Addrs are the addresses that clients can reach it at. DNS names a port
	// for a whole host, so a member with several ports has every one of them on
	// every one of its addresses.
	Addrs []netip.AddrPort
}

// host is a checked member: its addresses and ports apart, sorted.
type host struct {
	id    ident.ServerID
	v4    []netip.Addr
	v6    []netip.Addr
	ports []uint16
}

// newHost checks one member and takes it apart.
func newHost(m Member) (*host, error) {
	if len(m.Addrs) == 0 || len(m.Addrs) > maxMemberEndpoint {
		return nil, fmt.Errorf("member %v has %d addresses; give between 1 and %d", m.ID, len(m.Addrs), maxMemberEndpoint)
	}
	h := &host{id: m.ID}
	seen := map[netip.AddrPort]bool{}
	for _, a := range m.Addrs {
		a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
		if err := checkEndpoint(a); err != nil {
			return nil, fmt.Errorf("member %v: %w", m.ID, err)
		}
		if seen[a] {
			return nil, fmt.Errorf("member %v names %v twice", m.ID, a)
		}
		seen[a] = true
		h.ports = append(h.ports, a.Port())
		if a.Addr().Is4() {
			h.v4 = append(h.v4, a.Addr())
		} else {
			h.v6 = append(h.v6, a.Addr())
		}
	}
	h.v4, h.v6, h.ports = sortedSet(h.v4, netip.Addr.Compare), sortedSet(h.v6, netip.Addr.Compare), sortedSet(h.ports, compareUint16)
	n := len(h.v4) + len(h.v6)
	if n > MaxMemberAddrs {
		return nil, fmt.Errorf("member %v has %d different addresses; at most %d", m.ID, n, MaxMemberAddrs)
	}
	if n*len(h.ports) != len(seen) {
		return nil, fmt.Errorf("member %v has %d addresses and %d ports, but not every port on every address, which is all that DNS can say; listen on the same ports everywhere",
			m.ID, n, len(h.ports))
	}
	return h, nil
}

func checkEndpoint(a netip.AddrPort) error {
	ip := a.Addr()
	switch {
	case !ip.IsValid():
		return errors.New("an address is missing")
	case ip.Zone() != "":
		return fmt.Errorf("%v has an interface zone, which DNS cannot tell", a)
	case a.Port() == 0:
		return fmt.Errorf("%v has port 0; give the port that the server listens on", a)
	case ip.IsUnspecified():
		return fmt.Errorf("%v is the unspecified address; give one that clients can reach", a)
	case ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%v is a multicast or broadcast address; give the server's own", a)
	}
	return nil
}

// member puts a host together again.
func (h *host) member() Member {
	m := Member{ID: h.id}
	for _, ips := range [][]netip.Addr{h.v4, h.v6} {
		for _, ip := range ips {
			for _, p := range h.ports {
				m.Addrs = append(m.Addrs, netip.AddrPortFrom(ip, p))
			}
		}
	}
	return m
}

func (h *host) equal(o *host) bool {
	return h.id == o.id && slices.Equal(h.v4, o.v4) && slices.Equal(h.v6, o.v6) && slices.Equal(h.ports, o.ports)
}

func sortedSet[T comparable](s []T, compare func(a, b T) int) []T {
	slices.SortFunc(s, compare)
	return slices.Compact(s)
}

func compareUint16(a, b uint16) int { return int(a) - int(b) }
