package sim

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
)

// dns is what the zone says, and said: clients see changes late.
type dns struct {
	starts  []listing
	history []view // oldest first
}

// listing is one start of a server, and whether the zone names it.
type listing struct {
	server int // -1: nobody
	id     ident.ServerID
	in     bool
}

// view is what the zone says from a time on.
type view struct {
	since  time.Duration
	listed []listing
}

// lookup is one that is under way.
type lookup struct {
	core.Lookup
	failed bool
}

const defaultTTL = 5 * time.Second

func (d *DNS) ttl() time.Duration {
	if d.TTL == 0 {
		return defaultTTL
	}
	return d.TTL
}

// stranger is a server that does not exist. By its ID it is older than all that do.
func stranger() (listing, netip.AddrPort) {
	id, _ := ident.NewServerID(time.Unix(0, epoch).AddDate(-1, 0, 0), 0)
	return listing{server: -1, id: id}, serverAddr(1<<16 - 1)
}

func (w *World) openDNS() {
	d := &w.s.DNS
	for i := range w.servers {
		in := d.Members == nil || slices.Contains(d.Members, w.servers[i].spec.Name)
		w.dns.starts = append(w.dns.starts, listing{i, w.servers[i].id, in})
	}
	w.dns.history = []view{{-never, w.content()}}
}

// hasStarted puts a new start of a server into the zone, in time.
func (w *World) hasStarted(s *server) {
	w.dns.starts = append(w.dns.starts, listing{server: s.index, id: s.id})
	w.planRecords(len(w.dns.starts)-1, w.s.DNS.Join, 1)
}

// hasEnded takes the last start of a server out of the zone, in time.
func (w *World) hasEnded(s *server) {
	for i := range w.dns.starts {
		if w.dns.starts[i].id == s.id {
			w.planRecords(i, w.s.DNS.Leave, 0)
		}
	}
}

func (w *World) planRecords(start int, after time.Duration, in uint64) {
	if after >= 0 {
		w.queue.plan(event{at: w.now + after, kind: evRecords, who: int32(start), number: in})
	}
}

func (w *World) changeRecords(start int, in bool) {
	w.dns.starts[start].in = in
	w.publish()
}

// publish makes what the zone says now known.
func (w *World) publish() {
	w.dns.history = append(w.dns.history, view{w.now, w.content()})
}

// content returns what the zone says now, faults included.
func (w *World) content() (listed []listing) {
	f := &w.faults
	switch {
	case f.empty > 0:
		return nil
	case len(f.members) > 0:
		last := w.s.Faults[f.members[len(f.members)-1]].Members
		for i := range w.servers {
			if slices.Contains(last, w.servers[i].spec.Name) {
				listed = append(listed, listing{server: i, id: w.servers[i].id})
			}
		}
	default:
		for _, l := range w.dns.starts {
			if l.in {
				listed = append(listed, l)
			}
		}
	}
	if f.strangers > 0 {
		l, _ := stranger()
		listed = append(listed, l)
	}
	return listed
}

// seen returns what a client sees of the zone now.
func (w *World) seen(c *client) []listing {
	h := w.dns.history
	i := len(h) - 1
	for h[i].since > w.now-c.sight {
		i--
	}
	return h[i].listed
}

// lookUp begins a client's lookup.
func (w *World) lookUp(c *client, l *core.Lookup) {
	r := w.tell(RecordLookup)
	r.Client, r.Lookup = c.index, l
	w.hear(r)
	c.lookups[l.ID] = lookup{*l, w.faults.resolver > 0}
	draws := newStream(w.seed, "lookups of "+c.name)
	w.queue.plan(event{
		at: w.now + w.s.DNS.Delay.At(draws.word(uint64(l.ID))), kind: evLookup, who: int32(c.index), number: uint64(l.ID),
	})
}

var (
	errResolver = errors.New("the resolver fails")
	errNoHost   = errors.New("no such host")
)

// answerLookup hands the answer to a lookup in, unless it is no longer wanted.
func (w *World) answerLookup(c *client, id core.LookupID) {
	l, ok := c.lookups[id]
	if !ok {
		return
	}
	delete(c.lookups, id)
	now := w.coreTime(c)
	ttl := w.s.DNS.ttl()
	if l.Kind == core.LookupSRV {
		a := core.SRVAnswer{TTL: ttl}
		if l.failed {
			a = core.SRVAnswer{Err: errResolver}
		}
		for _, listed := range w.seen(c) {
			a.Records = append(a.Records, core.SRV{Target: listed.id.Label() + "." + zone, Port: serverPort})
		}
		c.core.HandleSRV(now, id, a)
	} else {
		a := core.AddrAnswer{TTL: ttl, Err: errNoHost}
		if addr, ok := w.addressOf(c, l.Name); ok {
			a = core.AddrAnswer{TTL: ttl, Addrs: []netip.Addr{addr}}
		}
		if l.failed {
			a = core.AddrAnswer{Err: errResolver}
		}
		c.core.HandleAddrs(now, id, a)
	}
	w.settle(c)
}

// addressOf finds a target in the zone.
func (w *World) addressOf(c *client, name string) (netip.Addr, bool) {
	id, ok := ident.ParseTarget(name)
	for _, l := range w.seen(c) {
		if !ok || l.id != id {
			continue
		}
		if l.server < 0 {
			_, nobody := stranger()
			return nobody.Addr(), true
		}
		return w.servers[l.server].addr.Addr(), true
	}
	return netip.Addr{}, false
}
