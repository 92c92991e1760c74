package limiter

import (
	"flag"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// bucketOps is how many operations the test against the exact log does in all.
var bucketOps = flag.Int("bucket-ops", 1_000_000, "operations on buckets against the exact log")

// bucketSeed makes its random patterns others.
var bucketSeed = flag.Uint64("bucket-seed", 1, "seed of the operations on buckets")

// verdictOf is what a run of a pattern showed.
type verdictOf struct {
	err   error   // the first grant over the limit, or the first deviation where none may be
	share float64 // tokens granted, of those that the exact log grants
}

// run drives a window with a pattern, beside an exact log of what it grants and beside another that
// decides for itself.
func run(p pattern, w window) (v verdictOf) {
	window := int64(p.window) * nsPerMs
	granted := &exactLog{window: window, rate: p.rate} // what w granted
	ideal := &exactLog{window: window, rate: p.rate}
	var got, want uint64
	merged := int64(-1) // until then a merged group may live
	now := window
	for range p.n {
		d := p.next()
		now += d.after
		if ok, _ := ideal.take(now, d.tokens); ok {
			want += uint64(d.tokens)
		}
		granted.expire(now)
		fits := uint64(granted.live)+uint64(d.tokens) <= uint64(p.rate)
		ok, live := w.take(now, d.tokens)
		if ok {
			got += uint64(d.tokens)
			granted.add(now, d.tokens)
		}
		if len(granted.times) > 128 {
			merged = now + window
		}
		switch {
		case granted.live > p.rate:
			return verdictOf{err: fmt.Errorf("at %d ns the window holds %d tokens of %d", now, granted.live, p.rate)}
		case live < granted.live:
			return verdictOf{err: fmt.Errorf("at %d ns the window holds %d tokens; %d are shown", now, granted.live, live)}
		case now > merged && (ok != fits || live != granted.live):
			return verdictOf{err: fmt.Errorf("at %d ns, with %d consumptions live: granted %t, want %t; %d tokens are shown of %d",
				now, len(granted.times), ok, fits, live, granted.live)}
		}
	}
	if want == 0 {
		return verdictOf{share: 1}
	}
	return verdictOf{share: float64(got) / float64(want)}
}

func (p pattern) String() string {
	return fmt.Sprintf("%s, %d per %d ms", p.name, p.rate, p.window)
}

// TestBucketAgainstLog is the promise of a bucket: never over the limit in any half-open window,
// exact while at most 128 consumptions are live, and at least 98 % of what is possible for steady
// singles and for bursts of exactly the limit.
func TestBucketAgainstLog(t *testing.T) {
	all := patterns(0, *bucketSeed)
	for _, p := range all {
		p.n = *bucketOps / len(all)
		if p.steady {
			p.n = max(p.n, min(3*int(p.rate), 30_000)) // a share is of full windows
		}
		b := newEngineBucket(p.window, p.rate)
		v := run(p, b)
		if v.err != nil {
			t.Errorf("%v: %v", p, v.err)
		}
		if p.steady && v.share < 0.98 {
			t.Errorf("%v: %.4f of what an exact log grants, want 0.98", p, v.share)
		}
		if n := b.groupCount(); n > maxGroups {
			t.Errorf("%v: %d groups", p, n)
		}
	}
}

// TestLogCatchesMistakes drives two usual ways of counting through the same test: it must find the
// one over the limit, and the other wasteful.
func TestLogCatchesMistakes(t *testing.T) {
	over, poor := 0, 1.0
	for _, p := range patterns(700, 1) {
		if v := run(p, wholeMs{newEngineBucket(p.window, p.rate)}); v.err != nil {
			over++
		}
	}
	for _, p := range patterns(700, 1) {
		v := run(p, &subWindows{window: int64(p.window) * nsPerMs, rate: p.rate})
		if p.steady {
			poor = min(poor, v.share)
		}
	}
	if over < 10 {
		t.Errorf("whole milliseconds are found out by %d patterns", over)
	}
	if poor > 0.6 {
		t.Errorf("fixed sub-windows get %.2f of what is possible at their worst", poor)
	}
}

// TestBucketProperty is the same promise for any demands at all.
func TestBucketProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windowMs := rapid.Uint32Range(1, 1<<rapid.IntRange(1, 32).Draw(t, "window bits")-1).Draw(t, "window")
		rate := rapid.Uint32Range(1, 1<<rapid.IntRange(1, 32).Draw(t, "rate bits")-1).Draw(t, "rate")
		w := int64(windowMs) * nsPerMs
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) demandOf {
			after := rapid.OneOf(
				rapid.Int64Range(0, 3), rapid.Int64Range(0, w/64), rapid.Int64Range(w-1, w+1), rapid.Int64Range(0, 2*w),
			).Draw(t, "after")
			return demandOf{after, rapid.Uint32Range(1, min(rate, 70_000)).Draw(t, "tokens")}
		}), 1, 400).Draw(t, "demands")
		k := -1
		p := pattern{window: windowMs, rate: rate, n: len(steps), next: func() demandOf { k++; return steps[k] }}
		if v := run(p, newEngineBucket(windowMs, rate)); v.err != nil {
			t.Fatal(v.err)
		}
	})
}
