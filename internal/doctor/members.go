package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
)

// maxFuture is how far ahead of its clock a client takes a server's start.
const maxFuture = time.Minute

// membership returns a core that knows no server yet. It is only asked which
// servers a client takes, so that the rules for that stand once; what the key and
// the policy are does not matter to it.
func (x *examination) membership(domain string) (*core.Core, error) {
	key, err := apikey.New(apikey.AuthNone, x.cfg.Client.Key.ID(), apikey.DefaultQuotas(), nil)
	if err != nil {
		return nil, err
	}
	return core.New(core.Config{Key: key, Entropy: x.cfg.Entropy, Domain: domain, Limits: x.cfg.Client.Limits})
}

// take makes servers of what DNS said, by the rules of a client but for one: those
// that start in the future are examined too, since a clock that is behind is among
// what may be wrong.
func (x *examination) take(d *DNS, records []discovery.SRV) error {
	m, err := x.membership(domain(&x.cfg.Client))
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	now := x.coreNow()
	for _, r := range records {
		rec := Record{Target: strings.TrimSuffix(r.Target, "."), Port: r.Port}
		if id, ok := ident.ParseTarget(r.Target); ok {
			rec.ID = id
			now.Wall = max(now.Wall, id.Start().UnixMilli())
		}
		d.Records = append(d.Records, rec)
	}
	m.HandleTimer(now)
	var ev core.Event
	for m.PollEvent(&ev) {
		if ev.Kind != core.EventLookup {
			continue
		}
		if ev.Lookup.Kind == core.LookupSRV {
			answer := core.SRVAnswer{}
			for _, r := range records {
				answer.Records = append(answer.Records, core.SRV{Target: r.Target, Port: r.Port})
			}
			m.HandleSRV(now, ev.Lookup.ID, answer)
			continue
		}
		answer := core.AddrAnswer{}
		for i := range d.Hosts {
			if strings.EqualFold(d.Hosts[i].Name, ev.Lookup.Name) {
				answer.Addrs = d.Hosts[i].Addrs
			}
		}
		m.HandleAddrs(now, ev.Lookup.ID, answer)
	}
	x.servers(m.Membership())
	for i := range d.Records {
		x.judge(d, &d.Records[i])
	}
	return nil
}

// servers notes the servers to examine. They come oldest first.
func (x *examination) servers(members []core.Server) {
	x.report.Servers = []Server{}
	oldest := true
	for _, m := range members {
		s := Server{ID: m.ID, Started: m.ID.Start(), Age: Millis(x.report.At.Sub(m.ID.Start()))}
		s.Future = x.report.DNS != nil && s.Age < -Millis(maxFuture)
		if !s.Future {
			s.Oldest, oldest = oldest, false
		}
		for _, e := range m.Endpoints {
			s.Endpoints = append(s.Endpoints, Endpoint{Addr: e})
		}
		x.report.Servers = append(x.report.Servers, s)
	}
}

// judge says whether a client takes a record, and if not, why.
func (x *examination) judge(d *DNS, r *Record) {
	h := slices.IndexFunc(d.Hosts, func(h Host) bool { return h.Name == r.Target })
	s := slices.IndexFunc(x.report.Servers, func(s Server) bool { return s.ID == r.ID })
	_, named := ident.ParseTarget(r.Target)
	switch {
	case !named:
		r.Why = "its first label is not s-<server ID>"
	case r.Port == 0:
		r.Why = "port 0"
	case h >= 0 && len(d.Hosts[h].Addrs) == 0:
		r.Why, r.unasked = noAddresses(&d.Hosts[h]), d.Hosts[h].Failure == Unasked
	case s < 0:
		r.Why = "over the limit of servers or addresses"
	case x.report.Servers[s].Future:
		r.Why, r.future = "starts "+span(-x.report.Servers[s].Age)+" from now", true
	case !taken(&x.report.Servers[s], r.Port):
		r.Why = "over the limit of addresses"
	default:
		r.Taken = true
	}
}

// taken reports whether one of the server's addresses has a record's port.
func taken(s *Server, port uint16) bool {
	return slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return e.Addr.Port() == port })
}

// noAddresses says why a host has no address that a client sends to.
func noAddresses(h *Host) string {
	switch {
	case len(h.Refused) > 0:
		return "nobody can be reached at " + join(h.Refused)
	case h.Failure == NoName || h.Failure == NoRecord:
		return "it has no address"
	}
	return "its addresses could not be looked up"
}

func join(addrs []netip.Addr) string {
	s := make([]string, len(addrs))
	for i, a := range addrs {
		s[i] = a.String()
	}
	return strings.Join(s, ", ")
}
