package limiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/wire"
)

// check holds the tree under node i against its rules and returns its size.
func (t *orderTree) check(tb testing.TB, i, parent uint16) int {
	if i == 0 {
		return 0
	}
	n := t.node(i)
	for _, c := range []uint16{n.left, n.right} {
		if c != 0 && t.node(c).rank > n.rank {
			tb.Fatalf("node %d has a higher rank than its parent %d", c, i)
		}
	}
	if n.left != 0 && t.node(n.left).latency > n.latency || n.right != 0 && t.node(n.right).latency < n.latency {
		tb.Fatalf("node %d is not between its children", i)
	}
	size := 1 + t.check(tb, n.left, i) + t.check(tb, n.right, i)
	if n.parent != parent || int(n.size) != size {
		tb.Fatalf("node %d has parent %d and size %d, want %d and %d", i, n.parent, n.size, parent, size)
	}
	return size
}

// filledTracker returns a tracker of n samples, at 0, 1, 2 … ns, and their latencies.
func filledTracker(tb testing.TB, n int) (*trackers, *trackerKey, *tracker, []uint32) {
	tb.Helper()
	c, err := Config{LatencyServices: 1, LatencyBufferSize: uint32(n)}.complete()
	if err != nil {
		tb.Fatal(err)
	}
	t := &trackers{limit: 1, samples: uint32(n)}
	t.mem.limit = c.sampleLimit()
	key := &trackerKey{ttl: 1000, maxSamples: uint32(n), layout: wire.Layout2}
	var latencies []uint32
	x := uint32(1)
	for i := range n + n/3 { // so that the ring begins somewhere in its slab
		x = x*1664525 + 1013904223
		t.observe(key, int64(max(0, i-n/3)), x>>22)
		latencies = append(latencies, x>>22)
	}
	return t, key, t.pool.at(1), latencies[n/3:]
}

// TestForgetMany lets any part of a tracker's samples expire at once: what is left is a tree as good
// as one that samples were taken from one by one.
func TestForgetMany(t *testing.T) {
	for _, n := range []int{100, 1000, maxSamples} {
		for _, over := range []int{expireEach + 1, n / 2, n - n/16 - 1, n - n/32, n - 1} {
			tr, key, r, latencies := filledTracker(t, n)
			now := key.ttlNs() + int64(over-1)
			tr.expire(r, now, maxSamples)
			if int(r.count) != n-over || r.oldest != int64(over) {
				t.Fatalf("%d of %d are over: %d are left, the oldest of %d", over, n, r.count, r.oldest)
			}
			tree := orderTree{tr.mem.at(r.slab, r.class), r.root}
			if size := tree.check(t, r.root, 0); size != n-over {
				t.Fatalf("%d of %d are over: %d are in the tree", over, n, size)
			}
			if d := tree.depth(r.root); d > 60 {
				t.Errorf("%d of %d are over: the rest lies %d deep", over, n, d)
			}
			for e := P50; e < estimators; e++ {
				tr.estimator = e
				if got, want := tr.estimateOf(key, now), statisticOf(e, latencies[over:]); got != want {
					t.Errorf("%d of %d are over: %v is %d, want %d", over, n, e, got, want)
				}
			}
			tr.forget(r)
			tr.insert(r, now, 7)
			tree.root = r.root
			tree.check(t, r.root, 0)
		}
	}
}

// The wheel does no more than its share at a time, whatever there is.
func TestWheelStepIsBounded(t *testing.T) {
	const n = 1000
	tr, key, r, _ := filledTracker(t, n)
	tr.expire(r, key.ttlNs()+n/2, samplesAStep)
	if got := n - int(r.count); got != samplesAStep {
		t.Errorf("a step took %d samples", got)
	}
}

// BenchmarkGuardAfterPause is one guard over a full tracker of which so many samples are over. The
// tracker is filled again in between, so the figure that counts is ns/least, of one guard.
func BenchmarkGuardAfterPause(b *testing.B) {
	const n = maxSamples
	for _, over := range []int{expireEach, n / 4, n / 2, n * 7 / 8, n - 1} {
		b.Run(fmt.Sprint(over), func(b *testing.B) {
			tr, key, r, _ := filledTracker(b, n)
			full, ring := *r, append([]sample(nil), tr.mem.at(r.slab, r.class)...)
			least := time.Hour
			for range b.N {
				*r = full
				copy(tr.mem.at(r.slab, r.class), ring)
				start := time.Now()
				tr.estimateOf(key, key.ttlNs()+int64(over-1))
				least = min(least, time.Since(start))
			}
			b.ReportMetric(float64(least), "ns/least")
		})
	}
}
