package core

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weirhq/weir/ident"
)

// Server is an r-server and where it is reached. Several endpoints are several
// ways to one server: all are sent to, and one answer is enough.
type Server struct {
	ID        ident.ServerID   // which also tells its age
	Endpoints []netip.AddrPort // at least one
}

// SetMembership names the servers of a core without a domain, in any order.
// Requests in flight keep the servers that they began with. Endpoints that
// nobody can be reached at, duplicates, a server without endpoints, and more
// than Config.Limits allows are errors (*[FieldError]), after which nothing has
// changed. [ErrClosed] after Close.
func (c *Core) SetMembership(now Time, servers []Server) error {
	c.advance(now)
	if c.closed {
		return ErrClosed
	}
	if c.cfg.Domain != "" {
		return &FieldError{"Domain", "servers are discovered there; a core with a domain takes no others"}
	}
	s := newSnapshot(servers)
	if err := s.check(&c.cfg.Limits); err != nil {
		return err
	}
	c.install(s, Skipped{})
	return nil
}

// Membership returns the servers that a request submitted now is sent to, oldest
// first, in memory of the caller's own.
func (c *Core) Membership() []Server { return cloneServers(c.members.servers) }

// install makes s the membership of later requests and tells if it, or what was
// left out of it, is new.
func (c *Core) install(s *snapshot, skipped Skipped) {
	skipped.Failed = 0 // told as EventDiscoveryFailed
	d := Discovered{Servers: len(s.servers), Endpoints: len(s.endpoints), Skipped: skipped}
	if c.members.equal(s) && c.discovery.told == d {
		return
	}
	if !c.members.equal(s) {
		c.members = s
		c.stats.MembershipChanges++
		c.failFast.membershipChanged(c.mono)
	}
	c.discovery.told = d
	c.events.push(pendingEvent{kind: EventMembershipChanged, members: c.members, discovered: d})
}

// snapshot is a membership, frozen: all requests submitted under it share it.
type snapshot struct {
	servers   []Server // oldest first, each with an endpoint
	endpoints []endpoint
}

type endpoint struct {
	server int // of the snapshot
	addr   netip.AddrPort
}

// newSnapshot copies servers and puts them in order.
func newSnapshot(servers []Server) *snapshot {
	s := &snapshot{servers: cloneServers(servers)}
	slices.SortFunc(s.servers, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	for i, server := range s.servers {
		for j, e := range server.Endpoints {
			server.Endpoints[j] = netip.AddrPortFrom(e.Addr().Unmap(), e.Port())
		}
		slices.SortFunc(server.Endpoints, netip.AddrPort.Compare)
		for _, addr := range server.Endpoints {
			s.endpoints = append(s.endpoints, endpoint{i, addr})
		}
	}
	return s
}

// index returns a server's place, or -1.
func (s *snapshot) index(id ident.ServerID) int {
	for i := range s.servers {
		if s.servers[i].ID == id {
			return i
		}
	}
	return -1
}

// all returns the set of all servers.
func (s *snapshot) all() uint64 {
	return ^uint64(0) >> (maxServers - len(s.servers)) // a shift by 64 gives 0
}

func (s *snapshot) equal(other *snapshot) bool {
	return slices.EqualFunc(s.servers, other.servers, func(a, b Server) bool {
		return a.ID == b.ID && slices.Equal(a.Endpoints, b.Endpoints)
	})
}

func cloneServers(servers []Server) []Server {
	clone := make([]Server, len(servers))
	for i, s := range servers {
		clone[i] = Server{s.ID, slices.Clone(s.Endpoints)}
	}
	return clone
}

// check refuses what [Core.SetMembership] says is an error.
func (s *snapshot) check(limits *Limits) error {
	if len(s.servers) > limits.Servers {
		return &FieldError{"Servers", fmt.Sprintf("%d servers are more than the limit of %d", len(s.servers), limits.Servers)}
	}
	if len(s.endpoints) > limits.Endpoints {
		return &FieldError{"Servers", fmt.Sprintf("%d endpoints in all are more than the limit of %d", len(s.endpoints), limits.Endpoints)}
	}
	for i, server := range s.servers {
		if i > 0 && s.servers[i-1].ID == server.ID {
			return &FieldError{"Servers", fmt.Sprintf("server %v is named twice; give one entry all of its endpoints", server.ID)}
		}
		if err := server.check(limits); err != nil {
			return err
		}
	}
	return nil
}

// check refuses endpoints that are none, too many, repeated or unreachable.
func (s Server) check(limits *Limits) error {
	field := fmt.Sprintf("Servers[%v].Endpoints", s.ID)
	if len(s.Endpoints) == 0 || len(s.Endpoints) > limits.Addresses {
		return &FieldError{field, fmt.Sprintf("there are %d; a server has 1 to %d", len(s.Endpoints), limits.Addresses)}
	}
	for i, e := range s.Endpoints {
		if !reachable(e) {
			return &FieldError{field, fmt.Sprintf("nobody can be reached at %v", e)}
		}
		if i > 0 && s.Endpoints[i-1] == e {
			return &FieldError{field, fmt.Sprintf("%v is named twice", e)}
		}
	}
	return nil
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// reachable reports whether a datagram may be sent there: not port 0, and no
// unspecified, multicast or broadcast address. IPv4 must not be mapped into IPv6.
func reachable(e netip.AddrPort) bool {
	a := e.Addr()
	return a.IsValid() && e.Port() != 0 && !a.IsUnspecified() && !a.IsMulticast() && a != broadcast
}
