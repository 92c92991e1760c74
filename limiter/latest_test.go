package limiter

import (
	"testing"

	"github.com/weirhq/weir/wire"
	"pgregory.net/rapid"
)

// An engine that starts where another's Stats.Latest is executes nothing that the other has executed, nor a copy
// of it, whatever the clock of the client was; and it is not deaf to what is a little newer.
func TestLatest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := testConfig()
		c.Skew, c.Identities = 1000, rapid.SampledFrom([]int{1, 4, 1000}).Draw(rt, "identities")
		r := newRig(t, c)
		type sent struct {
			h wire.Header
			q wire.Request
		}
		var executed []sent
		latest := r.e.Stats().Latest
		if latest != c.Start {
			rt.Fatalf("a new engine's latest is %d, want its start, %d", latest, c.Start)
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			r.pass(rapid.Int64Range(0, 200*nsPerMs).Draw(rt, "passed"))
			s := sent{h: r.header(), q: wire.Request{DedupTTL: rapid.Uint32Range(1, 300).Draw(rt, "ttl")}}
			s.h.Timestamp = uint64(int64(r.now.Wall) + rapid.Int64Range(-1000, 1000).Draw(rt, "off"))
			if len(executed) > 0 && rapid.Bool().Draw(rt, "copy") {
				// Sealed anew, as a client may do it for each send.
				old := executed[rapid.IntRange(0, len(executed)-1).Draw(rt, "of")]
				s.h.UniqueID, s.q = old.h.UniqueID, old.q
			}
			if v := r.send(s.h, s.q); !v.Dropped() {
				executed = append(executed, s)
				latest = max(latest, s.h.Timestamp+uint64(s.q.DedupTTL))
			}
		}
		last := r.e.Stats().Latest
		if last < latest || last > r.now.Wall+1000+300 {
			rt.Fatalf("the latest is %d, want at least %d", last, latest)
		}
		c.Start = last
		next := newRig(t, c)
		next.now = r.now
		for _, s := range executed {
			if v := next.send(s.h, s.q); v != DropFloor && v != DropStale {
				rt.Fatalf("a copy of what was executed: %v", v)
			}
		}
		next.pass(int64(last+1-min(last, next.now.Wall)) * nsPerMs)
		if v := next.ask(); v != Granted {
			rt.Fatalf("just after it: %v", v)
		}
	})
}

// A report's copy is no more welcome after a change of engines than a request's.
func TestLatestOfReports(t *testing.T) {
	r := newRig(t, testConfig())
	w := watch{"service", 1000, 32, 0}
	h := r.header()
	h.Timestamp += 5000
	v := reportView(t, wire.Layout2, w.took(5))
	if got := r.e.Observe(r.now, &h, &v); got != Observed {
		t.Fatal(got)
	}
	if got, want := r.e.Stats().Latest, h.Timestamp+300; got != want {
		t.Errorf("the latest is %d, want %d", got, want)
	}
}

// What docs/guarantees.md says of restarts, both halves of it: stamped at or before the new start is
// never executed again, stamped after it by a clock ahead is, once.
func TestRestart(t *testing.T) {
	for ahead, want := range map[uint64]Verdict{0: DropFloor, 9: DropFloor, 10: DropFloor, 11: Granted, 5000: Granted} {
		r := newRig(t, testConfig())
		h := r.header()
		h.Timestamp += ahead
		if v := r.send(h, wire.Request{}); v != Granted {
			t.Fatalf("%d ms ahead: %v", ahead, v)
		}
		r.pass(10 * nsPerMs)
		c := testConfig()
		c.Start = r.now.Wall
		restarted := newRig(t, c)
		restarted.now = r.now
		if v := restarted.send(h, wire.Request{}); v != want {
			t.Errorf("%d ms ahead, 10 ms before a restart: %v, want %v", ahead, v, want)
		}
		if v := restarted.send(h, wire.Request{}); want == Granted && v != RepeatGranted {
			t.Errorf("%d ms ahead, the copy of the copy: %v", ahead, v)
		}
	}
}
