package demo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/ident"
)

// Phase is what the servers are like while load is on.
type Phase int32

// The phases, in their order.
const (
	BothAlive Phase = iota
	OldestDead
	OldestDropped // by the client, after DNS has named it no more
	phases        = iota
)

// PhaseStats is what the load measured in a phase, or a part of one.
type PhaseStats struct {
	Phase     Phase
	Decisions int
	Failed    int // questions without a decision
	Rejected  int
	By        map[string]int // decisions by the server's name
	P50, P99  time.Duration  // of a question, as its caller waits for it
	FirstErr  error          // of the failed ones
}

const (
	callers   = 8
	callEvery = 10 * time.Millisecond // between the beginnings of two questions of a caller
)

// The load is far below this limit: a rejection would be a mistake.
var loaded = weir.Bucket("load", 1_000_000, time.Second)

// sample is one question of the load.
type sample struct {
	phase   Phase // in which it was asked
	took    time.Duration
	by      ident.ServerID
	granted bool
	err     error
}

// load is a number of callers that ask all the time.
type load struct {
	client  *weir.Client
	phase   atomic.Int32 // a Phase, of questions from now on
	stop    context.CancelFunc
	callers sync.WaitGroup

	mu      sync.Mutex
	samples []sample
	told    int // samples that row has told of
}

func startLoad(ctx context.Context, client *weir.Client) *load {
	ctx, stop := context.WithCancel(ctx)
	l := &load{client: client, stop: stop}
	for range callers {
		l.callers.Go(func() { l.call(ctx) })
	}
	return l
}

// call asks until ctx ends. A question under way then is still decided: it would
// otherwise be neither.
func (l *load) call(ctx context.Context) {
	tick := time.NewTicker(callEvery)
	defer tick.Stop()
	request := take(1, loaded)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s := sample{phase: Phase(l.phase.Load())}
		begun := time.Now()
		d, err := l.client.Acquire(context.WithoutCancel(ctx), request)
		s.took, s.by, s.granted, s.err = time.Since(begun), d.Server(), d.Granted(), err
		l.mu.Lock()
		l.samples = append(l.samples, s)
		l.mu.Unlock()
	}
}

func (l *load) enter(p Phase) { l.phase.Store(int32(p)) }

// end stops the callers and returns when all have stopped.
func (l *load) end() {
	l.stop()
	l.callers.Wait()
}

// row sums up what came since the last row.
func (l *load) row(nameOf func(ident.ServerID) string) PhaseStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.samples[l.told:]
	l.told = len(l.samples)
	return sum(Phase(l.phase.Load()), since, nameOf)
}

// total sums up a whole phase; the load has ended.
func (l *load) total(p Phase, nameOf func(ident.ServerID) string) PhaseStats {
	var of []sample
	for _, s := range l.samples {
		if s.phase == p {
			of = append(of, s)
		}
	}
	return sum(p, of, nameOf)
}

func sum(p Phase, samples []sample, nameOf func(ident.ServerID) string) PhaseStats {
	st := PhaseStats{Phase: p, By: map[string]int{}}
	took := make([]time.Duration, 0, len(samples))
	for _, s := range samples {
		if s.err != nil {
			st.Failed++
			if st.FirstErr == nil {
				st.FirstErr = s.err
			}
			continue
		}
		took = append(took, s.took)
		st.Decisions++
		st.By[nameOf(s.by)]++
		if !s.granted {
			st.Rejected++
		}
	}
	st.P50, st.P99 = percentile(took, 50), percentile(took, 99)
	return st
}
