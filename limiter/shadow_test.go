package limiter

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// A shadow engine decides, counts and consumes exactly as one that enforces, and every answer of it
// passes.
func TestShadowIsATwin(t *testing.T) {
	c := testConfig()
	c.RateBuckets, c.Pacing = 3, true
	enforced := newRig(t, c)
	c.Shadow = true
	shadow := newRig(t, c)
	r := rand.New(rand.NewPCG(1, 2))
	watched := watch{"service", 1000, 8, 1}
	seen := map[Verdict]int{}
	var last wire.Request
	var header wire.Header
	for step := range 20_000 {
		d := r.Int64N(3 * nsPerMs)
		enforced.pass(d)
		shadow.pass(d)
		switch k := r.IntN(10); {
		case k == 0:
			ms := uint32(r.IntN(200))
			enforced.report(watched.took(ms))
			shadow.report(watched.took(ms))
			continue
		case k < 3 && step > 0: // a repeat
		default:
			header = enforced.header()
			shadow.header()
			last = wire.Request{Guards: []wire.Guard{watched.below(uint32(1 + r.IntN(2)*100))}}
			for range r.IntN(3) {
				last.Resources = append(last.Resources, take(string(rune('a'+r.IntN(4))), 20, 10, uint16(r.IntN(12))))
			}
		}
		if header.UniqueID == (wire.UniqueID{}) {
			continue
		}
		want, got := enforced.send(header, last), shadow.send(header, last)
		if want != got {
			t.Fatalf("step %d: enforced %v, shadow %v", step, want, got)
		}
		seen[got]++
		if !slices.Equal(enforced.ans.Rates, shadow.ans.Rates) {
			t.Fatalf("step %d: %v: rates %v, shadow %v", step, got, enforced.ans.Rates, shadow.ans.Rates)
		}
		for i, latency := range shadow.ans.Latencies {
			if want := min(enforced.ans.Latencies[i], last.Guards[i].Threshold-1); latency != want {
				t.Fatalf("step %d: %v: guard %d shows %d ms, want %d", step, got, i, latency, want)
			}
		}
		if slices.ContainsFunc(shadow.ans.Deficits, func(d uint16) bool { return d != 0 }) {
			t.Fatalf("step %d: %v: deficits %v", step, got, shadow.ans.Deficits)
		}
	}
	for _, v := range []Verdict{Granted, Rejected, RepeatGranted, RepeatRejected} {
		if seen[v] < 100 {
			t.Errorf("only %d were %v", seen[v], v)
		}
	}
	a, b := enforced.e.Stats(), shadow.e.Stats()
	if b.Shadowed != uint64(seen[Rejected]) || a.Shadowed != 0 {
		t.Errorf("%d of %d rejections count as shadowed; enforced: %d", b.Shadowed, seen[Rejected], a.Shadowed)
	}
	if b.Shadowed = 0; a != b {
		t.Errorf("enforced\n%+v, shadow\n%+v", a, b)
	}
}

// Nothing passes a threshold of 0; the other blocks of its request are made to pass all the same.
func TestShadowThresholdZero(t *testing.T) {
	c := testConfig()
	c.Shadow = true
	r := newRig(t, c)
	tracker := watch{"service", 1000, 8, 1}
	r.report(tracker.took(50))
	v := r.send(r.header(), wire.Request{
		Guards:    []wire.Guard{tracker.below(0), tracker.below(10)},
		Resources: []wire.Resource{{Bucket: ident.Bucket("a", 1000, 1), Window: 1000, Rate: 1, Tokens: 2}},
	})
	if v != Rejected || !slices.Equal(r.ans.Latencies, []uint32{50, 9}) || r.ans.Deficits[0] != 0 {
		t.Errorf("%v: latencies %v, deficits %v", v, r.ans.Latencies, r.ans.Deficits)
	}
	if n := r.e.Stats().Shadowed; n != 0 {
		t.Errorf("%d rejections count as passed", n)
	}
}

// A repeat is answered as the first was, whatever the mode has become.
func TestShadowRepeatsAcrossModes(t *testing.T) {
	for _, shadow := range []bool{false, true} {
		c := testConfig()
		c.Shadow = shadow
		r := newRig(t, c)
		h, q := r.header(), wire.Request{Resources: []wire.Resource{take("a", 1000, 1, 2)}}
		r.send(h, q)
		first := r.ans.Deficits[0]
		c.Shadow = !shadow
		if err := r.e.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		if v := r.send(h, q); v != RepeatRejected || r.ans.Deficits[0] != first {
			t.Errorf("shadow %v: the repeat is %v with a deficit of %d, the first had %d", shadow, v, r.ans.Deficits[0], first)
		}
		r.send(r.header(), q)
		if passes := r.ans.Deficits[0] == 0; passes == shadow {
			t.Errorf("shadow %v: a new request after the change passes: %v", !shadow, passes)
		}
	}
}
