package server

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// warn logs what a server can run with and its operator will not want.
func (s *Server) warn() {
	s.warnOfClock(clockUnsynchronized())
	if a, bad := s.unreachable(); bad {
		s.log.Warn("DNS tells clients an address of a family that is not listened on; listen on 0.0.0.0 or [::] too, unless something in between translates",
			"advertise", a.String(), "listen", texts(s.Addrs()))
	}
	s.warnOfBuffer()
	s.warnOfTenants()
	s.tellRooms(slices.Collect(maps.Values(s.registry.tenants())))
}

func (s *Server) warnOfClock(unsynchronized bool) {
	if unsynchronized {
		s.log.Warn("the system says that its clock is not synchronized; run a time service such as chrony, because timestamps and this server's age are told by it")
	}
}

// tellRooms logs what the tenants can come to hold, and what a memory limit took from them.
func (s *Server) tellRooms(tenants []*tenant) {
	slices.SortFunc(tenants, func(a, b *tenant) int { return strings.Compare(a.name, b.name) })
	for _, t := range tenants {
		worst, held := t.room.worst(), int64(t.state.stats().Memory)
		attrs := []any{"tenant", t.name, "worst_case_bytes", worst}
		clamped := t.room.changes(&t.wanted)
		if len(clamped) == 0 {
			s.log.Info("tenant memory", attrs...)
			continue
		}
		s.log.Warn("the memory limit clamps a tenant's room", append(attrs, clamped...)...)
		if held > worst {
			s.log.Warn("a tenant holds more memory than the limit leaves it; its tables keep their size until it is removed or the server restarted",
				"tenant", t.name, "bytes", held, "worst_case_bytes", worst)
		}
	}
}

// warnOfTenants names the tenants that can have no request answered.
func (s *Server) warnOfTenants() {
	var names []string
	for _, t := range s.registry.tenants() {
		if t.mute {
			names = append(names, t.name)
		}
	}
	if len(names) == 0 {
		return
	}
	s.log.Warn("the newest keys of these tenants have a quota dedup_ttl_ms of 0, so every request is dropped (ttl); issue keys with weir key new", "tenants", some(names))
}

// unreachable returns the first address that DNS tells although nothing is listened on
// in its family. An IPv6 wildcard takes no IPv4.
func (s *Server) unreachable() (netip.AddrPort, bool) {
	if s.dns == nil {
		return netip.AddrPort{}, false
	}
	for _, told := range s.advertised() {
		same := func(a netip.AddrPort) bool { return a.Addr().Is4() == told.Addr().Is4() }
		if !slices.ContainsFunc(s.settings.listen, same) {
			return told, true
		}
	}
	return netip.AddrPort{}, false
}
