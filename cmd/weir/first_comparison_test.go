package main

import (
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

// TestFirstComparison holds what is expected of every request in the first three scenarios, under
// each preset by its own numbers.
func TestFirstComparison(t *testing.T) {
	for _, name := range []string{"healthy", "slow-oldest", "preferred-failure"} {
		for _, preset := range simcompare.Presets() {
			s, err := scenario.Embedded(name)
			if err != nil {
				t.Fatal(err)
			}
			s.Policy = preset.Policy
			w := &watcher{t: t, what: name + " under " + preset.Name, policy: preset.Policy, asked: make(map[uint64]*asked)}
			if _, err := sim.Run(s, 1, w); err != nil {
				t.Fatal(err)
			}
			w.judge()
			// The other server decides what A, with 10 to 30 ms, answers too late for, about.
			half := map[string]float64{"default": 0.5, "strict-oldest": 0.5}[preset.Name]
			want := map[string]float64{"healthy": 1, "slow-oldest": half, "preferred-failure": 0}[name]
			if share := float64(w.byA) / float64(len(w.asked)); math.Abs(share-want) > 0.05 {
				t.Errorf("%s: A decided %.3f of the requests, want %.3f", w.what, share, want)
			}
		}
	}
}

// asked is a request: when it was made, when the first answers of A and B came, or never, and what
// the client did.
type asked struct {
	at        time.Duration
	answer    [2]time.Duration
	decided   time.Duration
	by        int
	delivered [2]bool // A and B, as the request was decided
	missing   [2]bool // had not answered by then
	ends      int
}

const never = time.Duration(math.MaxInt64)

// watcher is a recorder of everything about requests.
type watcher struct {
	t      *testing.T
	what   string
	policy policy.Policy
	asked  map[uint64]*asked
	byA    int
}

// Record takes in what belongs to requests.
func (w *watcher) Record(r *sim.Record) {
	a := w.asked[r.Request]
	switch r.Kind {
	case sim.RecordSubmit:
		w.asked[r.Request] = &asked{at: r.At, answer: [2]time.Duration{never, never}}
	case sim.RecordResponse:
		a.answer[r.Server] = min(a.answer[r.Server], r.At-a.at)
	case sim.RecordSend:
		switch r.Send {
		case core.SendReplay:
			w.t.Errorf("%s: request %d is replayed", w.what, r.Request)
		case core.SendCompletion:
			a.delivered[r.Server] = true
		}
	case sim.RecordDecide:
		a.ends++
		a.decided = r.Completion.Elapsed
		if r.At != a.at+a.decided || r.Completion.Outcome > core.Rejected {
			w.t.Errorf("%s: request %d: %v after %v at %v", w.what, r.Request, r.Completion.Outcome, a.decided, r.At)
		}
		if !r.Completion.Oldest {
			a.by = 1
		}
		for i := range a.missing {
			a.missing[i] = a.answer[i] == never
		}
	}
}

// judge looks at every request.
func (w *watcher) judge() {
	preference := w.policy.Unit * time.Duration(w.policy.Preference.At(0))
	for id, a := range w.asked {
		by, at := 1, max(preference, a.answer[1])
		// A's answer is taken when it comes, if it comes by then. The one that is there first is,
		// too, where nobody is preferred.
		if a.answer[0] < at || preference == 0 && a.answer[0] <= at {
			by, at = 0, a.answer[0]
		}
		if a.ends != 1 || a.by != by || a.decided != at {
			w.t.Fatalf("%s: request %d, answered by A and B after %v, has %d ends, the last by %d after %v, want %d after %v",
				w.what, id, a.answer, a.ends, a.by, a.decided, by, at)
		}
		if a.delivered != a.missing {
			w.t.Fatalf("%s: request %d is delivered to %v, and %v had not answered", w.what, id, a.delivered, a.missing)
		}
		if by == 0 {
			w.byA++
		}
	}
	if len(w.asked) < 4000 {
		w.t.Errorf("%s: %d requests", w.what, len(w.asked))
	}
}
