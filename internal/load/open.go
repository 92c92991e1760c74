package load

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/precise"
)

// send sends at the rate until the run is over: from several goroutines, each with some of the flows.
func (r *run) send() {
	n := max(1, min(len(r.flows), runtime.GOMAXPROCS(0)/2))
	var all sync.WaitGroup
	for i := range n {
		s := &sender{
			run: r, random: rand.New(rand.NewPCG(r.cfg.Seed, 1<<32+uint64(i))), lag: newHistogram(),
			mean: float64(time.Second) / r.cfg.Rate * float64(n),
		}
		open := 0
		for k := i; k < len(r.flows); k += n {
			s.flows = append(s.flows, r.flows[k])
			open += r.flows[k].slots.len()
		}
		s.replays = r.cfg.newReplays(open)
		r.senders = append(r.senders, s)
		all.Go(s.send)
	}
	all.Wait()
}

// sender sends what is due, to each of its flows in turn.
type sender struct {
	*run
	flows   []*flow
	random  *rand.Rand
	mean    float64 // ns between two requests
	next    float64 // ns after the start: when the next is due
	turn    int     // of the flows
	full    []*flow // whose batches are not sent yet
	replays replays
	lag     *histogram
	skipped uint64
}

func (s *sender) send() {
	const most = 64 // between two readings of the clock
	for due := s.draw(); due < s.end.Load(); {
		until := due
		if at, ok := s.replays.due(); ok {
			until = min(until, at)
		}
		now := s.wait(until)
		s.replay(now)
		for n := 0; n < most && due <= now.mono && due < s.end.Load(); due = s.draw() {
			if s.counts(due) {
				s.lag.record(now.mono - due)
			}
			if now.mono-due > int64(s.cfg.Timeout) {
				s.skip(due)
				continue
			}
			n++
			if err := s.ask(due, now); err != nil {
				s.fail(err)
				return
			}
		}
		s.flush()
	}
	for at, ok := s.replays.due(); ok && at < s.end.Load()+int64(s.cfg.Timeout); at, ok = s.replays.due() {
		s.replay(s.sleep(at))
		s.flush()
	}
}

// draw returns when the next request is due: at a rate that is low enough, never.
func (s *sender) draw() int64 {
	s.next += s.random.ExpFloat64() * s.mean
	if !(s.next < math.MaxInt64) { // nor is it anything, if the mean is infinite
		return math.MaxInt64
	}
	return int64(s.next)
}

// skip leaves out a request that would be lost already if it were sent now.
func (s *sender) skip(due int64) {
	if s.counts(due) {
		s.skipped++
		s.latency[0].record(int64(s.cfg.Timeout))
	}
}

// ask puts one request into the batch of the flow whose turn it is.
func (s *sender) ask(due int64, now instant) error {
	f := s.flows[s.turn]
	s.turn = (s.turn + 1) % len(s.flows)
	s.room(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.slots.rotation
	f.slots.rotation = (i + 1) % uint32(f.slots.len())
	if f.slots.all[i].busy {
		f.lose(i) // more are open than can be within the timeout
	}
	if err := f.ask(i, due, now); err != nil {
		return err
	}
	s.replays.add(asked{f, i, f.slots.all[i].serial, now.mono})
	return nil
}

// room makes room in the batch of a flow.
func (s *sender) room(f *flow) {
	if f.n == len(f.out) {
		s.flush()
	}
	if f.n == 0 {
		s.full = append(s.full, f)
	}
}

func (s *sender) flush() {
	for _, f := range s.full {
		f.mu.Lock()
		conn := f.conn
		f.mu.Unlock()
		f.flush(conn)
	}
	s.full = s.full[:0]
}

// wait returns when something is due, or the run is over before. In virtual time only the runtime's
// timers tell the time.
func (s *sender) wait(due int64) instant {
	const look = int64(100 * time.Millisecond) // whether the run is over
	now := s.now()
	for ; now.mono < due && due < s.end.Load(); now = s.now() {
		s.sleep(min(due, now.mono+look))
	}
	return now
}

// sleep returns at a time.
func (s *sender) sleep(until int64) instant {
	now := s.now()
	switch {
	case now.mono >= until:
		return now
	case s.virtual:
		time.Sleep(time.Duration(until - now.mono))
	default:
		precise.SleepUntil(s.start.Add(time.Duration(until)))
	}
	return s.now()
}
