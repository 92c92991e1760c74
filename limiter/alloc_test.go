package limiter

import (
	"encoding/binary"
	"testing"

	"github.com/weirhq/weir/wire"
)

// load is prepared traffic: views and headers that cost a test nothing when it uses them.
type load struct {
	rig     *rig
	h       wire.Header
	request []wire.RequestView
	report  []wire.ReportView
	n       int
}

// newLoad prepares requests for n buckets, a few blocks and a guard each, and reports.
func newLoad(t testing.TB, c Config, n, blocks int) *load {
	t.Helper()
	l := &load{rig: newRig(t, c)}
	w := watch{"service", 1000, 32, 0}
	for i := range n {
		q := wire.Request{Guards: []wire.Guard{w.below(1000)}}
		for k := range blocks {
			q.Resources = append(q.Resources, numbered(i*blocks+k, 1000, 1<<31, 1))
		}
		l.request = append(l.request, requestView(t, q))
	}
	for i := range uint32(64) {
		l.report = append(l.report, reportView(t, wire.Layout2, w.took(i), w.took(1000-i)))
	}
	return l
}

// next stamps a new identity, so long after the last.
func (l *load) next(ns int64) {
	l.n++
	l.rig.pass(ns)
	binary.LittleEndian.PutUint64(l.h.UniqueID[:], uint64(l.n))
	l.h.Timestamp = l.rig.now.Wall
}

func (l *load) decide() Verdict {
	return l.rig.e.Decide(l.rig.now, &l.h, &l.request[l.n%len(l.request)], &l.rig.ans)
}

func (l *load) observe() Verdict {
	return l.rig.e.Observe(l.rig.now, &l.h, &l.report[l.n%len(l.report)])
}

// TestSteadyStateAllocatesNothing runs traffic through an engine until tables have their size, and
// then counts: decisions, repeats, drops and reports allocate nothing, although buckets, identities
// and answers come and go all the time.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	c := testConfig()
	c.Skew, c.Pacing = 200, true
	l := newLoad(t, c, 300, 3)
	const gap = 500_000 // each bucket is asked every 150 ms
	work := func() {
		l.next(gap)
		if v := l.decide(); v != Granted {
			t.Fatal(v)
		}
		if v := l.decide(); v != RepeatGranted {
			t.Fatal(v)
		}
		if v := l.observe(); v != Observed {
			t.Fatal(v)
		}
		if v := l.observe(); v != DropReplayed {
			t.Fatal(v)
		}
		l.h.Timestamp -= 1000
		if v := l.decide(); v != DropStale {
			t.Fatal(v)
		}
	}
	for range 20_000 {
		work()
	}
	if n := testing.AllocsPerRun(5000, work); n != 0 {
		t.Errorf("%v allocations for a decision and a report", n)
	}
	// The same when buckets die between their requests.
	churn := func() {
		l.next(4 * nsPerMs)
		if v := l.decide(); v != Granted {
			t.Fatal(v)
		}
	}
	for range 5000 {
		churn()
	}
	if n := testing.AllocsPerRun(2000, churn); n != 0 {
		t.Errorf("%v allocations for a decision that makes its buckets", n)
	}
	if n := testing.AllocsPerRun(100, func() { l.rig.e.Stats() }); n != 0 {
		t.Errorf("%v allocations for Stats", n)
	}
}
