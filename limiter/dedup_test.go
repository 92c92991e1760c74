package limiter

import (
	"slices"
	"testing"

	"github.com/weirhq/weir/wire"
)

// TestRepeats holds each rule about repeats.
func TestRepeats(t *testing.T) {
	r := newRig(t, testConfig())
	w := watch{"service", 10_000, 10, 1}
	r.report(w.took(40))
	q := wire.Request{
		DedupTTL:  100,
		Guards:    []wire.Guard{w.below(50)},
		Resources: []wire.Resource{take("a", 60_000, 10, 7), take("b", 60_000, 5, 1)},
	}
	h := r.header()
	if v := r.send(h, q); v != Granted {
		t.Fatal(v)
	}
	first := wire.Answer{Latencies: slices.Clone(r.ans.Latencies), Rates: slices.Clone(r.ans.Rates), Deficits: slices.Clone(r.ans.Deficits)}
	same := func(when string) {
		t.Helper()
		if !slices.Equal(r.ans.Latencies, first.Latencies) || !slices.Equal(r.ans.Rates, first.Rates) || !slices.Equal(r.ans.Deficits, first.Deficits) {
			t.Errorf("%s the repeat is answered %v, want %v", when, r.ans, first)
		}
	}
	// What happens in between changes buckets and trackers, not the answer.
	r.ask(take("a", 60_000, 10, 3))
	r.report(w.took(90), w.took(90))
	r.pass(50 * nsPerMs)
	if v := r.send(h, q); v != RepeatGranted {
		t.Errorf("a repeat: %v", v)
	}
	same("in time")
	// Other clients seal every send anew.
	again := h
	again.Timestamp += 40
	if v := r.send(again, q); v != RepeatGranted {
		t.Errorf("a repeat with a new timestamp: %v", v)
	}
	same("with a new timestamp")

	other := q
	other.Resources = slices.Clone(q.Resources)
	other.Resources[0].Tokens++
	if v := r.send(h, other); v != DropMismatch || len(r.ans.Rates) != 0 {
		t.Errorf("a repeat with another body: %v with %v", v, r.ans)
	}
	if v := r.send(h, wire.Request{DedupTTL: 101, Guards: q.Guards, Resources: q.Resources}); v != DropMismatch {
		t.Errorf("a repeat with another TTL: %v", v)
	}
	// The TTL runs from the first arrival, on the monotonic clock, and its end is outside.
	r.pass(50*nsPerMs - 1)
	if v := r.send(h, q); v != RepeatGranted {
		t.Errorf("a repeat just before the TTL: %v", v)
	}
	r.pass(1)
	if v := r.send(h, q); v != DropReplayed {
		t.Errorf("a repeat at the TTL: %v", v)
	}
	if r.ask(take("a", 60_000, 10, 0)); r.ans.Rates[0] != 10 {
		t.Errorf("the bucket holds %d tokens, want 10: repeats consumed some", r.ans.Rates[0])
	}
}

// TestRepeatOfRejection answers a repeat of a rejection with the rejection, though there is room now.
func TestRepeatOfRejection(t *testing.T) {
	r := newRig(t, testConfig())
	r.ask(take("a", 50, 5, 5))
	h := r.header()
	q := wire.Request{DedupTTL: 100, Resources: []wire.Resource{take("a", 50, 5, 2)}}
	if v := r.send(h, q); v != Rejected {
		t.Fatal(v)
	}
	r.pass(60 * nsPerMs)
	if v := r.send(h, q); v != RepeatRejected || r.ans.Deficits[0] != 2 || r.ans.Rates[0] != 5 {
		t.Errorf("%v with %v, want the first answer", v, r.ans)
	}
	if v := r.send(r.header(), q); v != Granted {
		t.Errorf("a new request: %v", v)
	}
}

func TestReportsCountOnce(t *testing.T) {
	r := newRig(t, testConfig())
	w := watch{"service", 10_000, 10, 2}
	h := r.header()
	v := reportView(t, wire.Layout2, w.took(40))
	if got := r.e.Observe(r.now, &h, &v); got != Observed {
		t.Fatal(got)
	}
	for range 3 {
		if got := r.e.Observe(r.now, &h, &v); got != DropReplayed {
			t.Errorf("a repeat of a report: %v", got)
		}
	}
	if got := r.guard(w.below(1)); got != 0 {
		t.Errorf("two samples are live, want the one that was reported")
	}
	// A request of the same unique ID is another datagram.
	if got := r.send(h, wire.Request{}); got != Granted {
		t.Errorf("a request with the report's ID: %v", got)
	}
}

func TestDrops(t *testing.T) {
	c := testConfig()
	c.WindowMax, c.DedupTTLMax, c.Skew = 1000, 200, 3000
	c.Start = wallStart - 2000
	fine := wire.Request{DedupTTL: 200, Resources: []wire.Resource{take("a", 1000, 5, 1)}}
	tests := []struct {
		name string
		off  int64 // of the timestamp, ms
		q    wire.Request
		want Verdict
	}{
		{"in order", 0, fine, Granted},
		{"TTL over the quota", 0, wire.Request{DedupTTL: 201}, DropTTL},
		{"as late as may be, but before the start", -3000, fine, DropFloor},
		{"late", -3001, fine, DropStale},
		{"as early as may be", 3000, fine, Granted},
		{"early", 3001, fine, DropStale},
		{"at the start", -2000, fine, DropFloor},
		{"after the start", -1999, fine, Granted},
		{"window over the quota", 0, wire.Request{Resources: []wire.Resource{take("a", 1, 1, 1), take("a", 1001, 1, 0)}}, DropWindow},
	}
	for _, tt := range tests {
		r := newRig(t, c)
		h := r.header()
		h.Timestamp = uint64(int64(h.Timestamp) + tt.off)
		if got := r.send(h, tt.q); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		} else if got.Dropped() && len(r.ans.Rates) != 0 {
			t.Errorf("%s: it has an answer", tt.name)
		}
		if tt.want == DropStale || tt.want == DropFloor {
			v := reportView(t, wire.Layout2)
			if got := r.e.Observe(r.now, &h, &v); got != tt.want {
				t.Errorf("%s: a report: %v, want %v", tt.name, got, tt.want)
			}
		}
		if got := r.e.Stats().Identities; got != 0 && tt.want.Dropped() {
			t.Errorf("%s: a dropped datagram is remembered", tt.name)
		}
	}
	r := newRig(t, testConfig())
	for ahead, want := range map[uint64]Verdict{5000: Granted, 5001: DropStale} { // the default skew
		h := r.header()
		h.Timestamp += ahead
		if got := r.send(h, wire.Request{}); got != want {
			t.Errorf("%d ms ahead: %v, want %v", ahead, got, want)
		}
	}
	// A clock that stands before 1970 and the skew is no reason to call everything stale.
	c.Start = 0
	early := newRig(t, c)
	early.now.Wall = 1000
	if got := early.ask(); got != Granted {
		t.Errorf("at the beginning of time: %v", got)
	}
	h := r.header()
	v := requestView(t, fine)
	v.DedupTTL = 0 // our own client cannot build it
	if got := r.e.Decide(r.now, &h, &v, &r.ans); got != DropTTL {
		t.Errorf("no TTL: %v, want %v", got, DropTTL)
	}
}

// TestForgottenIdentities lets an identity expire and others be evicted: the floor stands for both.
func TestForgottenIdentities(t *testing.T) {
	c := testConfig()
	c.Identities, c.Skew = 3, 1000
	r := newRig(t, c)
	q := wire.Request{DedupTTL: 100}
	var all []wire.Header
	for i := range 5 {
		h := r.header()
		h.Timestamp += uint64(10 * (4 - i)) // the last is spent first
		all = append(all, h)
		if v := r.send(h, q); v != Granted && i < 3 {
			t.Fatal(v)
		}
	}
	// The third to come was full's first victim: all later ones have smaller timestamps.
	s := r.e.Stats()
	if s.Identities != 3 || s.Degraded != 1 || s.Floor != all[3].Timestamp+100 {
		t.Errorf("%d identities, %d degraded, floor %d; want 3, 1, %d", s.Identities, s.Degraded, s.Floor, all[3].Timestamp+100)
	}
	for i, want := range []Verdict{RepeatGranted, RepeatGranted, RepeatGranted, DropFloor, DropFloor} {
		if v := r.send(all[i], q); v != want {
			t.Errorf("identity %d: %v, want %v", i, v, want)
		}
	}
	// A skew after they are spent nothing is remembered, nor counted as degraded.
	for ms := range 1141 {
		r.pass(nsPerMs)
		r.e.Reclaim(r.now, 100)
		if want := all[2].Timestamp + 1100; ms == 1139 && r.e.Stats().Identities == 0 {
			t.Errorf("all is forgotten before %d", want)
		}
	}
	if s := r.e.Stats(); s.Identities != 0 || s.Degraded != 1 || s.Floor != all[0].Timestamp+100 {
		t.Errorf("%d identities, %d degraded, floor %d; want 0, 1, %d", s.Identities, s.Degraded, s.Floor, all[0].Timestamp+100)
	}
	// A clock that goes back makes old datagrams fresh again; the floor holds.
	r.now.Wall = wallStart
	for i := range all {
		if v := r.send(all[i], q); v != DropFloor {
			t.Errorf("identity %d after the clock went back: %v", i, v)
		}
	}
}

// TestProlongedIdentity remembers an identity as long as its youngest copy is fresh, so that a clock
// that jumped between two sends of one request does not make the second a new one.
func TestProlongedIdentity(t *testing.T) {
	c := testConfig()
	c.Skew = 1000
	r := newRig(t, c)
	h := r.header()
	if v := r.send(h, wire.Request{}); v != Granted {
		t.Fatal(v)
	}
	h.Timestamp += 900
	if v := r.send(h, wire.Request{}); v != RepeatGranted {
		t.Fatal(v)
	}
	r.pass(1900 * nsPerMs)
	for r.e.Reclaim(r.now, 10) {
	}
	if v := r.send(h, wire.Request{}); v != DropReplayed {
		t.Errorf("the youngest copy, still fresh: %v", v)
	}
}

// TestAnswerGone drops a repeat whose answer made room for others.
func TestAnswerGone(t *testing.T) {
	c := testConfig()
	c.AnswerBytes = 1024
	r := newRig(t, c)
	h := r.header()
	q := wire.Request{Resources: []wire.Resource{take("a", 1000, 1000, 1)}}
	r.send(h, q)
	n := 0
	for ; r.e.Stats().AnswersLost == 0; n++ {
		if n > 1024 {
			t.Fatal("the ring never runs over")
		}
		if v := r.send(h, q); v != RepeatGranted {
			t.Fatalf("%v with %d answers since", v, n)
		}
		r.ask(take("a", 1000, 1000, 1))
	}
	if v := r.send(h, q); v != DropNoAnswer || len(r.ans.Rates) != 0 {
		t.Errorf("%v with %v, want %v", v, r.ans, DropNoAnswer)
	}
	if n < 1024/(2*(answerHead+6)) {
		t.Errorf("only %d answers fit", n)
	}
	if r.ask(take("a", 1000, 1000, 0)); int(r.ans.Rates[0]) != n+1 {
		t.Errorf("%d tokens are consumed, want %d", r.ans.Rates[0], n+1)
	}
}

// TestExpiredIsNotDegraded makes room by identities whose time is over, and does not count those as
// degraded.
func TestExpiredIsNotDegraded(t *testing.T) {
	c := testConfig()
	c.Identities, c.Skew = 40, 1000
	r := newRig(t, c)
	slot := uint64(wallStart+wheelSlots) / wheelSlots * wheelSlots
	for i := range uint64(40) {
		h := r.header()
		h.Timestamp = slot + wheelSlots - 1 - 60 // spent at the slot's end
		if i >= 20 {
			h.Timestamp = slot + 1 - 60 // at its beginning
		}
		if v := r.send(h, wire.Request{}); v != Granted {
			t.Fatal(v)
		}
	}
	r.now.Wall = slot + wheelSlots/2 + 1000 // half of them are over
	for range 21 {
		if v := r.ask(); v != Granted {
			t.Fatal(v)
		}
	}
	if s := r.e.Stats(); s.Degraded != 1 || s.Identities != 40 {
		t.Errorf("%d degraded of %d, want 1 of 40", s.Degraded, s.Identities)
	}
}
