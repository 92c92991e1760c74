package limiter

import (
	"slices"
	"sort"
	"strconv"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
	"pgregory.net/rapid"
)

// watch is a tracker as a test names it.
type watch struct {
	name                     string
	ttl, maxSamples, atLeast uint32
}

func (w watch) id() ident.ID { return ident.Tracker(w.name, w.ttl, w.maxSamples, w.atLeast) }

func (w watch) took(ms uint32) wire.Observation {
	return wire.Observation{Tracker: w.id(), TTL: w.ttl, MaxSamples: w.maxSamples, MinSamples: w.atLeast, Latency: ms}
}

func (w watch) below(ms uint32) wire.Guard {
	return wire.Guard{Tracker: w.id(), TTL: w.ttl, MaxSamples: w.maxSamples, MinSamples: w.atLeast, Threshold: ms}
}

// statisticOf computes an estimate by sorting.
func statisticOf(e Estimator, latencies []uint32) uint32 {
	if len(latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(latencies))
	n := len(sorted)
	switch e {
	case Min:
		return sorted[0]
	case Mean:
		sum := uint64(0)
		for _, l := range sorted {
			sum += uint64(l)
		}
		return uint32(sum / uint64(n))
	}
	// The smallest sample that at least so many percent do not exceed.
	for _, l := range sorted {
		atMost := sort.Search(n, func(i int) bool { return sorted[i] > l })
		if 100*atMost >= map[Estimator]int{P50: 50, P90: 90, P99: 99}[e]*n {
			return l
		}
	}
	return 0
}

// plainTracker is a tracker without any economy.
type plainTracker struct {
	ttl       int64
	times     []int64
	latencies []uint32
}

func (p *plainTracker) expire(now int64) {
	for len(p.times) > 0 && now-p.times[0] >= p.ttl {
		p.times, p.latencies = p.times[1:], p.latencies[1:]
	}
}

func (p *plainTracker) observe(now int64, latency uint32, capacity int) {
	p.expire(now)
	for drop := 2; drop > 0 && len(p.times) >= capacity; drop-- { // a lowered quota drains
		p.times, p.latencies = p.times[1:], p.latencies[1:]
	}
	p.times, p.latencies = append(p.times, now), append(p.latencies, latency)
}

func TestEstimators(t *testing.T) {
	samples := []uint32{50, 10, 40, 20, 30, 60, 70, 80, 90, 100}
	want := map[Estimator]uint32{P50: 50, Min: 10, P90: 90, P99: 100, Mean: 55}
	for e := P50; e < estimators; e++ {
		c := testConfig()
		c.Estimator = e
		r := newRig(t, c)
		w := watch{"service", 1000, 100, 0}
		for _, s := range samples {
			r.report(w.took(s))
		}
		if got := r.guard(w.below(1)); got != want[e] || got != statisticOf(e, samples) {
			t.Errorf("%v: %d, want %d", e, got, want[e])
		}
		if back, err := ParseEstimator(e.String()); err != nil || back != e {
			t.Errorf("%q is parsed as %v, %v", e.String(), back, err)
		}
	}
	if _, err := ParseEstimator("p95"); err == nil {
		t.Error("an unknown estimator is parsed")
	}
}

// TestTrackerAgainstSort compares every estimate with a sort of what is live.
func TestTrackerAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := trackerKey{
			ttl:        rapid.Uint32Range(1, 100).Draw(t, "ttl"),
			maxSamples: rapid.SampledFrom([]uint32{1, 2, 3, 7, 32, 33, 100, 1 << 20}).Draw(t, "max samples"),
			minSamples: rapid.SampledFrom([]uint32{0, 1, 5}).Draw(t, "min samples"),
			layout:     wire.Layout2,
		}
		c, err := Config{LatencyServices: 1, LatencyBufferSize: rapid.SampledFrom([]uint32{1, 8, 300}).Draw(t, "buffer")}.complete()
		if err != nil {
			t.Fatal(err)
		}
		tr := trackers{limit: 1, samples: c.LatencyBufferSize}
		tr.mem.limit = c.sampleLimit()
		plain := plainTracker{ttl: key.ttlNs()}
		values := rapid.OneOf(rapid.Uint32Range(0, 5), rapid.Uint32()) // many equal ones, and any
		now := int64(0)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			now += rapid.OneOf(
				rapid.Int64Range(0, 2), rapid.Int64Range(0, plain.ttl/8), rapid.Int64Range(plain.ttl-3, plain.ttl+1),
			).Draw(t, "passed")
			if rapid.IntRange(0, 4).Draw(t, "report") > 0 {
				latency := values.Draw(t, "latency")
				if !tr.observe(&key, now, latency) {
					t.Fatal("no room for one tracker")
				}
				plain.observe(now, latency, tr.capacity(&key))
			}
			for rapid.Bool().Draw(t, "pass") && tr.reclaim(now, tick(now)) {
			}
			tr.estimator = Estimator(rapid.Uint8Range(0, uint8(estimators)-1).Draw(t, "estimator"))
			plain.expire(now)
			want := statisticOf(tr.estimator, plain.latencies)
			if len(plain.latencies) < int(key.minSamples) {
				want = 0
			}
			if got := tr.estimateOf(&key, now); got != want {
				t.Fatalf("%v of %v: %d, want %d", tr.estimator, plain.latencies, got, want)
			}
		}
		if tr.pool.live > 0 {
			checkTree(t, &tr, tr.find(&key, key.hash(tr.hash)))
		}
	})
}

// checkTree checks the shape of a tracker's order tree.
func checkTree(t *rapid.T, tr *trackers, i uint32) {
	if i == 0 {
		t.Fatal("the tracker is not found")
	}
	r := tr.pool.at(i)
	tree := orderTree{tr.mem.at(r.slab, r.class), r.root}
	var walk func(i, parent uint16, low, high uint32) int
	walk = func(i, parent uint16, low, high uint32) int {
		if i == 0 {
			return 0
		}
		n := tree.node(i)
		if n.parent != parent || n.latency < low || n.latency > high {
			t.Fatalf("node %d is out of place", i)
		}
		if parent != 0 && n.rank > tree.node(parent).rank {
			t.Fatalf("node %d outranks its parent", i)
		}
		size := 1 + walk(n.left, i, low, n.latency) + walk(n.right, i, n.latency, high)
		if size != int(n.size) {
			t.Fatalf("node %d has size %d, want %d", i, n.size, size)
		}
		return size
	}
	if n := walk(tree.root, 0, 0, 1<<32-1); n != int(r.count) {
		t.Fatalf("the tree has %d nodes, want %d", n, r.count)
	}
}

// depth returns the length of the longest way down a tree.
func (t *orderTree) depth(i uint16) int {
	if i == 0 {
		return 0
	}
	return 1 + max(t.depth(t.node(i).left), t.depth(t.node(i).right))
}

// TestOrderTreeDepth sends what makes a plain search tree a list.
func TestOrderTreeDepth(t *testing.T) {
	c, err := Config{LatencyServices: 1, LatencyBufferSize: maxSamples}.complete()
	if err != nil {
		t.Fatal(err)
	}
	for name, latency := range map[string]func(i int) uint32{
		"rising":  func(i int) uint32 { return uint32(i) },
		"falling": func(i int) uint32 { return uint32(1<<20 - i) },
		"equal":   func(int) uint32 { return 7 },
		"zigzag":  func(i int) uint32 { return uint32(i * (i%2*2 - 1)) },
	} {
		tr := trackers{limit: 1, samples: maxSamples}
		tr.mem.limit = c.sampleLimit()
		key := trackerKey{ttl: 1 << 20, maxSamples: maxSamples, layout: wire.Layout2}
		for i := range 2 * maxSamples {
			tr.observe(&key, int64(i), latency(i))
		}
		r := tr.pool.at(1)
		if int(r.count) != maxSamples {
			t.Fatalf("%d samples, want %d", r.count, maxSamples)
		}
		tree := orderTree{tr.mem.at(r.slab, r.class), r.root}
		if d := tree.depth(tree.root); d > 60 { // 15 would be perfect
			t.Errorf("%s: %d samples lie %d deep", name, maxSamples, d)
		}
	}
}

// TestTrackerRules holds the rules of guards and reports one by one.
func TestTrackerRules(t *testing.T) {
	r := newRig(t, testConfig())
	w := watch{"service", 1000, 100, 3}
	if got := r.guard(w.below(5)); got != 0 || r.e.Stats().Trackers != 0 {
		t.Error("a guard on an unknown tracker reads something, or makes one")
	}
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{w.below(0)}}); v != Rejected {
		t.Errorf("a threshold of 0: %v, want it rejected", v)
	}
	for _, unseen := range []watch{{"service", 0, 100, 3}, {"service", 1000, 0, 3}} {
		if v := r.report(unseen.took(5)); v != Observed || r.e.Stats().Trackers != 0 || r.e.Stats().DroppedBlocks != 0 {
			t.Errorf("%+v: samples that nobody can see make a tracker, or count as dropped", unseen)
		}
	}
	r.report(w.took(30), w.took(10))
	if got := r.guard(w.below(5)); got != 0 {
		t.Errorf("with too few samples the estimate is %d, want 0", got)
	}
	r.report(w.took(20))
	for threshold, want := range map[uint32]Verdict{20: Rejected, 21: Granted, 0: Rejected} {
		if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{w.below(threshold)}}); v != want || r.ans.Latencies[0] != 20 {
			t.Errorf("threshold %d: %v at %d, want %v at 20", threshold, v, r.ans.Latencies[0], want)
		}
	}
	// A failing guard keeps tokens, a failing bucket too.
	bucket := take("b", 1000, 1, 1)
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{w.below(20)}, Resources: []wire.Resource{bucket}}); v != Rejected || r.ans.Deficits[0] != 0 {
		t.Errorf("a failing guard beside a bucket with room: %v, deficit %d", v, r.ans.Deficits[0])
	}
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{w.below(21)}, Resources: []wire.Resource{bucket}}); v != Granted {
		t.Errorf("the bucket was charged by a rejected request: %v", v)
	}
	// Samples are forgotten after the TTL one by one, and the tracker with the last.
	r.pass(1)
	late := watch{"service", 1000, 100, 1}
	r.report(late.took(7))
	r.pass(1)
	r.report(late.took(9))
	r.pass(1000*nsPerMs - 1)
	if got := r.guard(late.below(5)); got != 9 {
		t.Errorf("at the first sample's TTL the estimate is %d, want 9", got)
	}
	r.report(w.took(30), w.took(10), w.took(20))
	r.pass(1000*nsPerMs - 1)
	if got := r.guard(w.below(5)); got != 20 {
		t.Errorf("just before the TTL the estimate is %d, want 20", got)
	}
	r.pass(1)
	if got := r.guard(w.below(5)); got != 0 {
		t.Errorf("at the TTL the estimate is %d, want 0", got)
	}
	r.pass(2 << tickBits)
	r.ask()
	if s := r.e.Stats(); s.Trackers != 0 || s.Samples != 0 {
		t.Errorf("%d trackers with %d samples are left", s.Trackers, s.Samples)
	}
}

// TestTrackerKeys keeps definitions apart that share an ID.
func TestTrackerKeys(t *testing.T) {
	r := newRig(t, testConfig())
	id := ident.ID{9}
	base := wire.Observation{Tracker: id, TTL: 1000, MaxSamples: 10, MinSamples: 1}
	variants := []func(o *wire.Observation){
		func(*wire.Observation) {},
		func(o *wire.Observation) { o.TTL = 2000 },
		func(o *wire.Observation) { o.MaxSamples = 11 },
		func(o *wire.Observation) { o.MinSamples = 2 },
		func(o *wire.Observation) { o.Tracker = ident.ID{8} },
	}
	for i, change := range variants {
		o := base
		change(&o)
		o.Latency = uint32(100 + i)
		r.report(o, o)
	}
	for i, change := range variants {
		o := base
		change(&o)
		g := wire.Guard{Tracker: o.Tracker, TTL: o.TTL, MaxSamples: o.MaxSamples, MinSamples: o.MinSamples, Threshold: 1}
		if got := r.guard(g); got != uint32(100+i) {
			t.Errorf("variant %d: %d, want %d", i, got, 100+i)
		}
	}
	// Layout 1 has a buffer size, which bounds the samples and belongs to the definition.
	h := r.header()
	v := reportView(t, wire.Layout1,
		wire.Observation{Tracker: id, TTL: 1000, MaxSamples: 10, BufferSize: 1, MinSamples: 1, Latency: 7},
		wire.Observation{Tracker: id, TTL: 1000, MaxSamples: 10, BufferSize: 1, MinSamples: 1, Latency: 9},
		wire.Observation{Tracker: id, TTL: 1000, MaxSamples: 10, BufferSize: 0, MinSamples: 1, Latency: 11})
	if got := r.e.Observe(r.now, &h, &v); got != Observed {
		t.Fatal(got)
	}
	for size, want := range map[uint32]uint32{0: 0, 1: 9, 2: 0} {
		g := wire.Guard{Tracker: id, TTL: 1000, MaxSamples: 10, BufferSize: size, MinSamples: 1, Threshold: 1}
		r.send(r.header(), wire.Request{Layout: wire.Layout1, Guards: []wire.Guard{g}})
		if got := r.ans.Latencies[0]; got != want {
			t.Errorf("layout 1, buffer size %d: %d, want %d", size, got, want)
		}
	}
	if got := r.guard(wire.Guard{Tracker: id, TTL: 1000, MaxSamples: 10, MinSamples: 1, Threshold: 1}); got != 100 {
		t.Errorf("layout 2 reads %d, want its own 100", got)
	}
}

func BenchmarkTracker(b *testing.B) {
	for _, n := range []uint32{32, 1024, maxSamples} {
		c, err := Config{LatencyServices: 1, LatencyBufferSize: n}.complete()
		if err != nil {
			b.Fatal(err)
		}
		tr := trackers{limit: 1, samples: n}
		tr.mem.limit = c.sampleLimit()
		key := trackerKey{ttl: 1 << 30, maxSamples: n, layout: wire.Layout2}
		x := uint32(1)
		step := func() {
			x = x*1664525 + 1013904223
			tr.observe(&key, int64(x>>20), x>>16)
		}
		for range 2 * n {
			step()
		}
		b.Run("observe/"+strconv.Itoa(int(n)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
		b.Run("observe+estimate/"+strconv.Itoa(int(n)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step()
				tr.estimateOf(&key, 0)
			}
		})
		b.Run("estimate/"+strconv.Itoa(int(n)), func(b *testing.B) {
			for b.Loop() {
				tr.estimateOf(&key, 0)
			}
		})
	}
}
