package core

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/ident"
)

// target is one SRV record that names a server.
type target struct {
	id   ident.ServerID
	host string // lower case, without a trailing dot
	port uint16
}

// future is how far ahead of the wall clock a server may have started, in ms:
// clocks differ, but an ID from next year would be a mistake.
const future = 60_000

// conforming returns the targets that SRV records name, without duplicates, in
// the order of age, name and port, within the limits.
func conforming(records []SRV, wall int64, limits *Limits) ([]target, Skipped) {
	var targets []target
	var skipped Skipped
	for _, r := range records {
		id, ok := ident.ParseTarget(r.Target)
		switch {
		case !ok || r.Port == 0:
			skipped.Targets++
		case id.Start().UnixMilli() > wall+future:
			skipped.Future++
		default:
			host := strings.ToLower(strings.TrimSuffix(r.Target, "."))
			targets = append(targets, target{id, host, r.Port})
		}
	}
	slices.SortFunc(targets, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.host, b.host), cmp.Compare(a.port, b.port))
	})
	targets = slices.Compact(targets)
	kept := limit(targets, limits)
	skipped.Excess = uint64(len(targets) - len(kept))
	return kept, skipped
}

// limit cuts sorted targets: the youngest servers go, and of a server the
// targets that sort last. Each target is worth an endpoint at least.
func limit(targets []target, limits *Limits) []target {
	var kept []target
	servers, ofServer := 0, 0
	for i, t := range targets {
		if i == 0 || targets[i-1].id != t.id {
			servers, ofServer = servers+1, 0
		}
		ofServer++
		if servers > limits.Servers || len(kept) == limits.Endpoints {
			break
		}
		if ofServer <= limits.Addresses {
			kept = append(kept, t)
		}
	}
	return kept
}

// usable returns the addresses that a datagram can be sent to.
func usable(addrs []netip.Addr) (kept []netip.Addr, refused uint64) {
	for _, a := range addrs {
		a = a.Unmap()
		if !reachable(netip.AddrPortFrom(a, 1)) {
			refused++
			continue
		}
		kept = append(kept, a)
	}
	return kept, refused
}

// families is a set of the two address families.
type families struct{ v4, v6 bool }

// has reports whether an address, which is not mapped, is of a family in the set.
func (f families) has(a netip.Addr) bool { return a.Is4() && f.v4 || a.Is6() && f.v6 }

// assemble makes the servers that the targets name, with what their hosts
// resolved to. A server without addresses of a family that could not be looked up
// keeps those that it has in last, at the ports that it is named at now.
func assemble(targets []target, hosts []hostLookup, last *snapshot, limits *Limits) (servers []Server, excess uint64) {
	total := 0
	for len(targets) > 0 {
		n := 1
		for n < len(targets) && targets[n].id == targets[0].id {
			n++
		}
		endpoints, lost := resolved(targets[:n], hosts)
		endpoints = append(endpoints, remembered(targets[:n], last, lost)...)
		slices.SortFunc(endpoints, netip.AddrPort.Compare)
		endpoints = slices.Compact(endpoints)
		room := min(limits.Addresses, limits.Endpoints-total)
		if len(endpoints) > room {
			excess += uint64(len(endpoints) - room)
			endpoints = endpoints[:room]
		}
		if len(endpoints) > 0 {
			servers = append(servers, Server{targets[0].id, endpoints})
			total += len(endpoints)
		}
		targets = targets[n:]
	}
	return servers, excess
}

// resolved returns where one server's targets are, and of which families nothing
// was found because a lookup failed.
func resolved(targets []target, hosts []hostLookup) (endpoints []netip.AddrPort, lost families) {
	for _, t := range targets {
		for i := range hosts {
			h := &hosts[i]
			if h.name != t.host {
				continue
			}
			lost.v4 = lost.v4 || h.failed.v4
			lost.v6 = lost.v6 || h.failed.v6
			for _, a := range h.addrs {
				endpoints = append(endpoints, netip.AddrPortFrom(a, t.port))
			}
		}
	}
	for _, e := range endpoints {
		lost.v4 = lost.v4 && !e.Addr().Is4()
		lost.v6 = lost.v6 && !e.Addr().Is6()
	}
	return endpoints, lost
}

// remembered returns where one server was, at the ports of now, as far as that is
// of these families.
func remembered(targets []target, last *snapshot, of families) (endpoints []netip.AddrPort) {
	i := last.index(targets[0].id)
	if i < 0 {
		return nil
	}
	for _, t := range targets {
		for _, e := range last.servers[i].Endpoints {
			if of.has(e.Addr()) {
				endpoints = append(endpoints, netip.AddrPortFrom(e.Addr(), t.port))
			}
		}
	}
	return endpoints
}
