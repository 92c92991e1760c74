package load

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/precise"
)

// send starts the goroutines that send at the rate, each for some of the flows.
func (r *run) send(senders *sync.WaitGroup) {
	n := max(1, min(len(r.flows), runtime.GOMAXPROCS(0)/2))
	for i := range n {
		var own []*flow
		for k := i; k < len(r.flows); k += n {
			own = append(own, r.flows[k])
		}
		s := &sender{run: r, flows: own, random: rand.New(rand.NewPCG(r.cfg.Seed, 1<<32+uint64(i))), mean: float64(time.Second) / r.cfg.Rate * float64(n)}
		senders.Go(s.send)
	}
}

// sender sends what is due, to each of its flows in turn.
type sender struct {
	*run
	flows  []*flow
	random *rand.Rand
	mean   float64 // ns between two requests
	full   []*flow // whose batches are not sent yet
}

func (s *sender) send() {
	next := 0.0
	for i := 0; ; i++ {
		next += s.random.ExpFloat64() * s.mean
		due := int64(next)
		if due >= s.end.Load() {
			break
		}
		now := s.now()
		if now.mono < due {
			s.flush()
			if now = s.wait(now, due); due >= s.end.Load() {
				break
			}
		}
		if err := s.ask(s.flows[i%len(s.flows)], due, now); err != nil {
			s.fail(err)
			return
		}
	}
	s.flush()
}

// ask puts one request into its flow's batch.
func (s *sender) ask(f *flow, due int64, now instant) error {
	if f.n == len(f.out) {
		s.flush()
	}
	if f.n == 0 {
		s.full = append(s.full, f)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.next
	f.next = (f.next + 1) % uint32(len(f.slots))
	if f.slots[i].busy {
		f.lose(&f.slots[i])
	}
	if f.counts(due) {
		f.tally.lag.record(now.mono - due)
	}
	return f.ask(i, due, now)
}

func (s *sender) flush() {
	for _, f := range s.full {
		f.mu.Lock()
		conn := f.conn
		f.mu.Unlock()
		f.flushTo(conn)
	}
	s.full = s.full[:0]
}

// wait returns when something is due, or the run is over before. In virtual time only the runtime's
// timers tell the time.
func (s *sender) wait(now instant, due int64) instant {
	const look = int64(100 * time.Millisecond) // whether the run is over
	for ; now.mono < due && due < s.end.Load(); now = s.now() {
		until := min(due, now.mono+look)
		if s.virtual {
			time.Sleep(time.Duration(until - now.mono))
		} else {
			precise.SleepUntil(s.start.Add(time.Duration(until)))
		}
	}
	return now
}
