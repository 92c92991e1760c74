package sim

import (
	"slices"
	"strconv"
	"time"
)

// faults is what goes wrong now.
type faults struct {
	all       []fault
	onLinks   []*fault // of links, in the scenario's order
	onServers []*fault // FaultSlow
	onWork    []*fault
	members   []int // FaultMembers, the last of which counts
	empty     int
	resolver  int
	strangers int
}

// fault is one of the scenario.
type fault struct {
	spec  *Fault
	index int
	where between
	whom  int // server or service
	draws stream
}

func (w *World) planFaults() {
	w.faults.all = make([]fault, len(w.s.Faults))
	named := make(map[string]int)
	for i := range w.faults.all {
		spec := &w.s.Faults[i]
		f := &w.faults.all[i]
		name := "fault " + spec.Kind.String() + " at " + spec.At.String() + spec.Server + spec.Service + spec.From + spec.To
		named[name]++
		if n := named[name]; n > 1 { // its chance is its own, too
			name += " again " + strconv.Itoa(n)
		}
		*f = fault{spec: spec, index: i, draws: newStream(w.seed, name)}
		switch spec.Kind {
		case FaultPartition, FaultLoss, FaultDelay:
			f.where = w.s.between(spec.From, spec.To, spec.Both)
		case FaultWork:
			f.whom = w.s.service(spec.Service)
		case FaultPause, FaultSlow, FaultKill, FaultForget, FaultClock:
			f.whom = w.s.server(spec.Server)
		case FaultMembers, FaultEmpty, FaultResolver, FaultStranger:
		}
		w.queue.plan(event{at: spec.At, kind: evFault, who: int32(i)})
		if spec.For > 0 {
			w.queue.plan(event{at: spec.At + spec.For, kind: evFaultEnds, who: int32(i)})
		}
	}
}

func (w *World) tellFault(f *fault, begins bool) {
	r := w.tell(RecordFault)
	r.Fault, r.Up = f.index, begins
	w.hear(r)
}

func (w *World) beginFault(i int) {
	f := &w.faults.all[i]
	w.tellFault(f, true)
	switch f.spec.Kind {
	case FaultPartition, FaultLoss, FaultDelay:
		w.faults.onLinks = append(w.faults.onLinks, f)
		slices.SortFunc(w.faults.onLinks, func(a, b *fault) int { return a.index - b.index })
	case FaultSlow:
		w.faults.onServers = append(w.faults.onServers, f)
	case FaultWork:
		w.faults.onWork = append(w.faults.onWork, f)
	case FaultPause:
		s := &w.servers[f.whom]
		w.pause(s)
		if f.spec.For == 0 {
			s.stuck++
		}
	case FaultKill:
		w.kill(&w.servers[f.whom])
	case FaultForget:
		if err := w.forget(&w.servers[f.whom]); err != nil {
			w.fail("%w", err)
		}
	case FaultClock:
		w.step(f, f.spec.Step)
	case FaultMembers:
		w.faults.members = append(w.faults.members, i)
	case FaultEmpty:
		w.faults.empty++
	case FaultResolver:
		w.faults.resolver++
	case FaultStranger:
		w.faults.strangers++
	}
	w.publishIf(f)
}

func (w *World) endFault(i int) {
	f := &w.faults.all[i]
	w.tellFault(f, false)
	is := func(g *fault) bool { return g == f }
	switch f.spec.Kind {
	case FaultPartition, FaultLoss, FaultDelay:
		w.faults.onLinks = slices.DeleteFunc(w.faults.onLinks, is)
	case FaultSlow:
		w.faults.onServers = slices.DeleteFunc(w.faults.onServers, is)
	case FaultWork:
		w.faults.onWork = slices.DeleteFunc(w.faults.onWork, is)
	case FaultPause:
		w.resume(&w.servers[f.whom])
	case FaultKill:
		w.revive(&w.servers[f.whom])
	case FaultForget: // for good
	case FaultClock:
		w.step(f, -f.spec.Step)
	case FaultMembers:
		w.faults.members = slices.DeleteFunc(w.faults.members, func(n int) bool { return n == i })
	case FaultEmpty:
		w.faults.empty--
	case FaultResolver:
		w.faults.resolver--
	case FaultStranger:
		w.faults.strangers--
	}
	w.publishIf(f)
}

// publishIf lets DNS follow a fault that is about it.
func (w *World) publishIf(f *fault) {
	switch f.spec.Kind {
	case FaultMembers, FaultEmpty, FaultStranger:
		w.publish()
	}
}

func (w *World) kill(s *server) {
	s.killed++
	if s.killed > 1 {
		return
	}
	w.stop(s)
	w.hasEnded(s)
}

// revive starts a server that is kept down by nothing else any more.
func (w *World) revive(s *server) {
	s.killed--
	if s.killed > 0 {
		return
	}
	if err := w.run(s, w.wall(s.skew)); err != nil {
		w.fail("server %s: %w", s.spec.Name, err)
		return
	}
	w.tellServer(s, nil)
	w.hasStarted(s)
}

// step sets wall clocks, of a server or of clients.
func (w *World) step(f *fault, by time.Duration) {
	if f.whom >= 0 {
		w.servers[f.whom].skew += by
		return
	}
	clients := w.s.party(f.spec.From)
	first, end := clients.first, clients.end
	if clients.all {
		first, end = 0, len(w.clients)
	}
	for i := first; i < end; i++ {
		w.clients[i].skew += by
	}
}

// touch tells what the faults of links do to a datagram: how much later it is, and whether and
// why it is lost.
func (f *faults) touch(d *datagram) (extra time.Duration, cause Cause) {
	for _, g := range f.onLinks {
		up, down := g.where.fits(int(d.client), int(d.server))
		if d.answer && !down || !d.answer && !up {
			continue
		}
		switch g.spec.Kind {
		case FaultPartition:
			return 0, LostPartition
		case FaultLoss:
			if g.spec.Chance.happens(g.draws.word(d.luck)) {
				cause = LostLink
			}
		case FaultDelay:
			extra += g.spec.Dist.At(g.draws.word(d.luck))
		}
	}
	return extra, cause
}

// slowness draws how much longer a server takes for something.
func (f *faults) slowness(server int, what uint64) (d time.Duration) {
	for _, g := range f.onServers {
		if g.whom == server {
			d += g.spec.Dist.At(g.draws.word(what))
		}
	}
	return d
}

// workload draws how much longer a service takes for something.
func (f *faults) workload(service int, what uint64) (d time.Duration) {
	for _, g := range f.onWork {
		if g.whom == service {
			d += g.spec.Dist.At(g.draws.word(what))
		}
	}
	return d
}
