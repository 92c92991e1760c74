package sim

import (
	"math"
	"time"
)

// serviceLoad is what is known of a service while the run goes on.
type serviceLoad struct {
	parallel int // places; 0 without a bound
	inside   int // pieces of work that wait or are done
	since    time.Duration
	// under holds, for each request whose work is inside, the latency that it must stay below to be
	// good.
	under map[uint64]time.Duration
	use   ServiceUse
}

func newServices(s *Scenario) []serviceLoad {
	all := make([]serviceLoad, len(s.Services))
	for i := range all {
		spec := &s.Services[i]
		l := &all[i]
		*l = serviceLoad{parallel: max(1, spec.Parallel), under: map[uint64]time.Duration{}}
		if spec.Parallel < 0 {
			l.parallel = 0
		}
		l.use = ServiceUse{Service: i, Seconds: make([]Second, (s.Length+time.Second-1)/time.Second)}
		l.use.Capacity = time.Duration(l.parallel) * (s.Length - s.Warmup)
	}
	return all
}

// within tells whether what happens at a time counts for services: they are measured between warmup
// and length.
func (m *Measurer) within(at time.Duration) bool {
	return at >= m.scenario.Warmup && at < m.scenario.Length
}

// second returns the second of a time, or one that nobody looks at.
func (l *serviceLoad) second(at time.Duration) *Second {
	if i := int(at / time.Second); i < len(l.use.Seconds) {
		return &l.use.Seconds[i]
	}
	return new(Second)
}

// change adds up the time for which places were taken, and then changes how many pieces of work are
// inside.
func (m *Measurer) change(l *serviceLoad, at time.Duration, by int) {
	busy := l.inside
	if l.parallel > 0 {
		busy = min(busy, l.parallel)
	}
	from, to := max(l.since, m.scenario.Warmup), min(at, m.scenario.Length)
	l.use.Busy += time.Duration(busy) * max(0, to-from)
	l.since = at
	l.inside += by
}

func (m *Measurer) workBegins(r *Record) {
	l := &m.services[r.Service]
	m.change(l, r.At, 1)
	l.under[r.Request] = m.threshold(r)
	l.second(r.At).Admitted++
	if m.within(r.At) {
		l.use.Admitted++
	}
}

// threshold returns what the latency of a request's work has to stay below: the threshold of its
// guard on the service's tracker, if it has one.
func (m *Measurer) threshold(r *Record) time.Duration {
	q := m.requests.get(r.Request)
	if q == nil {
		return math.MaxInt64
	}
	choice := &m.scenario.Clients[m.clients[q.client]].Mix[q.choice]
	for i := range choice.Guard {
		if choice.Guard[i].Tracker == m.scenario.Services[r.Service].Tracker {
			return choice.Guard[i].Threshold
		}
	}
	return math.MaxInt64
}

func (m *Measurer) workEnds(r *Record) {
	l := &m.services[r.Service]
	limit, begun := l.under[r.Request]
	if begun {
		m.change(l, r.At, -1)
		delete(l.under, r.Request)
	}
	within := m.within(r.At)
	if r.Refused {
		if within {
			l.use.Refused++
		}
		return
	}
	s := l.second(r.At)
	s.Completed++
	good := r.Elapsed < limit
	if good {
		s.Good++
	}
	if !within {
		return
	}
	l.use.Completed++
	l.use.Latency.Add(int64(r.Elapsed))
	if good {
		l.use.Good++
	}
}

// workRejected counts a request that was rejected and would have made a service work.
func (m *Measurer) workRejected(q *followed) {
	name := m.scenario.Clients[m.clients[q.client]].Mix[q.choice].Work
	for i := range m.services {
		if name == "" || m.scenario.Services[i].Name != name {
			continue
		}
		l := &m.services[i]
		l.second(q.submit).Rejected++
		if q.measured {
			l.use.Rejected++
		}
	}
}

func (m *Measurer) finishServices() []ServiceUse {
	uses := make([]ServiceUse, len(m.services))
	first := (m.scenario.Warmup + time.Second - 1) / time.Second
	for i := range m.services {
		l := &m.services[i]
		m.change(l, max(m.now, m.scenario.Length), 0)
		for s := first; s < m.scenario.Length/time.Second; s++ {
			if l.use.Seconds[s].Admitted == 0 {
				l.use.Idle++
			}
		}
		uses[i] = l.use
	}
	return uses
}
