package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/core"
)

// phase is what the servers are like.
type phase struct {
	restart int       // how many before, this one included
	dead    bool      // the client knows a server that is dead, or another one now
	at      time.Time // since when
}

func (p phase) String() string {
	switch {
	case p.dead:
		return fmt.Sprintf("after kill %d", p.restart)
	case p.restart > 0:
		return fmt.Sprintf("after the client saw restart %d", p.restart)
	}
	return "before the first kill"
}

// load is a number of callers, each of which asks again as soon as it has a
// decision.
type load struct {
	client *weir.Client
	phase  atomic.Pointer[phase]
	stop   atomic.Bool
	wg     sync.WaitGroup
	took   [][2][]time.Duration // by caller; while all live, while one is dead

	mu       sync.Mutex
	failures []failure
}

// failure is a question without the decision that was expected.
type failure struct {
	asked, ended time.Time
	phase        phase // at the end
	err          error
}

var errRejected = errors.New("rejected")

func startLoad(c *weir.Client, callers int) *load {
	l := &load{client: c, took: make([][2][]time.Duration, callers)}
	l.enter(phase{at: time.Now()})
	for i := range callers {
		l.wg.Go(func() { l.call(&l.took[i]) })
	}
	return l
}

func (l *load) call(took *[2][]time.Duration) {
	for !l.stop.Load() {
		p := l.phase.Load()
		asked := time.Now()
		d, err := l.client.Acquire(context.Background(), question)
		ended := time.Now()
		if err == nil && !d.Granted() {
			err = fmt.Errorf("%w: %v", errRejected, d)
		}
		if err != nil {
			l.mu.Lock()
			l.failures = append(l.failures, failure{asked, ended, *l.phase.Load(), err})
			l.mu.Unlock()
			continue
		}
		kind := 0
		if p.dead {
			kind = 1
		}
		took[kind] = append(took[kind], ended.Sub(asked))
	}
}

func (l *load) enter(p phase) { l.phase.Store(&p) }

// failed reports whether there is nothing left to prove.
func (l *load) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.failures) > 0
}

// end stops the callers and returns when all have their last decision.
func (l *load) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

// report says what was measured and, for each failure, when it was and whether
// this process was stalled then.
func report(t *testing.T, l *load, stalls []stall, queue *queueWatch) {
	t.Helper()
	for kind, name := range [...]string{"all alive", "one dead, or restarted and not in DNS"} {
		var all []time.Duration
		for i := range l.took {
			all = append(all, l.took[i][kind]...)
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		t.Logf("%s: %d decisions, p50 %v, p99 %v, p99.99 %v, max %v", name, len(all),
			all[len(all)/2], all[len(all)*99/100], all[len(all)*9999/10000], all[len(all)-1])
	}
	s := l.client.Stats()
	t.Logf("sent: %d first, %d replays, %d completion deliveries; not sent: %d; received: %s", s.Sent[core.SendFirst],
		s.Sent[core.SendReplay], s.Sent[core.SendCompletion], s.SendFailures[core.SendFirst]+s.SendFailures[core.SendReplay], verdicts(&s))
	t.Logf("longest stalls of this process: %v", longest(stalls, 5))
	if len(l.failures) > maxTold {
		t.Errorf("%d questions failed; the first %d:", len(l.failures), maxTold)
	}
	for _, f := range l.failures[:min(maxTold, len(l.failures))] {
		t.Errorf("%v, at %v: asked %v and failed %v after that: %v", f.phase, f.ended.Format("15:04:05.000"),
			f.asked.Sub(f.phase.at), f.ended.Sub(f.phase.at), f.err)
		t.Logf("meanwhile: stalls of this process %v; threads waited for a processor: %s",
			within(stalls, f.asked, f.ended), queue.between(f.asked, f.ended))
	}
}

// maxTold is how many failures are told of: they come in crowds.
const maxTold = 10

func verdicts(s *weir.Stats) string {
	var text []string
	for v, n := range s.Datagrams {
		if n > 0 {
			text = append(text, fmt.Sprintf("%d %v", n, core.DatagramVerdict(v)))
		}
	}
	return strings.Join(text, ", ")
}
