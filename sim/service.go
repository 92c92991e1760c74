package sim

import (
	"time"

	"github.com/weirhq/weir/wire"
)

// service does granted work, first come first served.
type service struct {
	index   int
	spec    *Service
	tracker wire.Observation
	reports bool
	times   stream
	samples stream
	queue   ring[job]
	running []job
	free    []int // of running
	busy    int
}

// job is one piece of work.
type job struct {
	client *client
	p      *pending
	since  time.Duration
}

func (w *World) addServices() {
	w.services = make([]service, len(w.s.Services))
	for i := range w.services {
		spec := &w.s.Services[i]
		s := &w.services[i]
		*s = service{
			index: i, spec: spec,
			times:   newStream(w.seed, "work of "+spec.Name),
			samples: newStream(w.seed, "samples of "+spec.Name),
		}
		if spec.Tracker != "" && spec.Sample >= 0 {
			s.reports = true
			s.tracker = w.observation(&w.s.Trackers[w.s.tracker(spec.Tracker)])
		}
	}
}

// beginWork takes in what a request was granted for.
func (w *World) beginWork(s *service, c *client, p *pending) {
	r := w.tell(RecordWork)
	r.Client, r.Request, r.Service = c.index, p.number, s.index
	w.hear(r)
	j := job{c, p, w.now}
	switch {
	case s.spec.Parallel < 0 || s.busy < max(1, s.spec.Parallel):
		w.start(s, j)
	case s.spec.Queue > 0 && s.queue.n >= s.spec.Queue:
		w.tellWorked(s, &j, true)
		w.endWork(&j)
	default:
		s.queue.push(j)
	}
}

// start gives a piece of work a place.
func (w *World) start(s *service, j job) {
	s.busy++
	what := thing(uint64(j.client.index), j.p.ordinal)
	took := s.spec.Time.At(s.times.word(what)) + w.faults.workload(s.index, what)
	n := len(s.running)
	if last := len(s.free) - 1; last >= 0 {
		n = s.free[last]
		s.free = s.free[:last]
		s.running[n] = j
	} else {
		s.running = append(s.running, j)
	}
	w.queue.plan(event{at: w.now + took, kind: evWorked, who: int32(s.index), number: uint64(n)})
}

// worked ends a piece of work and begins the next.
func (w *World) worked(s *service, n uint64) {
	j := s.running[n]
	s.running[n] = job{}
	s.free = append(s.free, int(n))
	s.busy--
	w.tellWorked(s, &j, false)
	if s.reports && s.sampled(&j) {
		w.report(s, &j)
	}
	if s.queue.n > 0 {
		w.start(s, s.queue.pop())
	}
	w.endWork(&j)
}

func (w *World) tellWorked(s *service, j *job, refused bool) {
	r := w.tell(RecordWorked)
	r.Client, r.Request, r.Service, r.Elapsed, r.Refused = j.client.index, j.p.number, s.index, w.now-j.since, refused
	w.hear(r)
}

// endWork lets the caller go on.
func (w *World) endWork(j *job) {
	w.think(j.client, j.p.caller, j.p.ordinal, j.p.at)
	w.putPending(j.p)
}

func (s *service) sampled(j *job) bool {
	every := uint64(max(1, s.spec.Sample))
	return share(s.samples.word(thing(uint64(j.client.index), j.p.ordinal)), every) == 0
}

// report has the client tell all servers how long the work took, its wait included.
func (w *World) report(s *service, j *job) {
	took := w.now - j.since
	w.said[0] = s.tracker
	w.said[0].Latency = uint32(took.Milliseconds())
	err := j.client.core.Report(w.coreTime(j.client), w.said[:])
	r := w.tell(RecordReport)
	r.Client, r.Service, r.Elapsed, r.Err = j.client.index, s.index, took, err
	w.hear(r)
	w.counts.Reports++
	w.settle(j.client)
}
