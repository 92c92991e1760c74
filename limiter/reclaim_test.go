package limiter

import (
	"testing"
	"unsafe"

	"github.com/weirhq/weir/wire"
)

// TestRecordSizes keeps the records of buckets to one line of a cache, and 10^7 of them in bounds.
func TestRecordSizes(t *testing.T) {
	if n := unsafe.Sizeof(bucket{}); n > 64 {
		t.Errorf("a bucket is %d bytes", n)
	}
	if n := unsafe.Sizeof(segment{}); n > 4096 {
		t.Errorf("a segment is %d bytes", n)
	}
}

// TestReclaim fills an engine, lets everything expire, and lets a trickle of calls take it back: what
// was taken is used again, and nothing grows.
func TestReclaim(t *testing.T) {
	const n = 5000
	c := testConfig()
	c.RateBuckets, c.LatencyServices, c.Skew = n, n, 1000
	r := newRig(t, c)
	fill := func() {
		t.Helper()
		for k := range 6 { // several groups each, over time
			for i := range n {
				if v := r.ask(numbered(i, 2000, 1000, 1)); v != Granted {
					t.Fatalf("bucket %d: %v", i, v)
				}
				if k == 0 {
					r.report(watch{string(rune(i)), 2000, 10, 0}.took(5))
				}
			}
			r.pass(nsPerMs)
		}
	}
	fill()
	full := r.e.Stats()
	if full.Buckets != n || full.Trackers < n/2 || full.Groups < 6*n || full.Identities < 6*n || full.Answers < n {
		t.Fatalf("not full: %+v", full)
	}
	r.pass(3000 * nsPerMs)
	for range full.Identities { // each call does a few steps
		r.ask()
	}
	s := r.e.Stats()
	if s.Buckets != 0 || s.Groups != 0 || s.Trackers != 0 || s.Samples != 0 {
		t.Errorf("left over: %+v", s)
	}
	if s.Identities > full.Identities || s.Answers > full.Identities+answerPageMax/answerHead {
		t.Errorf("%d identities and %d answers are left", s.Identities, s.Answers)
	}
	if s.Memory > full.Memory {
		t.Errorf("memory grew from %d to %d bytes", full.Memory, s.Memory)
	}
	r.pass(3000 * nsPerMs)
	for range full.Identities {
		r.e.Reclaim(r.now, 4)
	}
	if s = r.e.Stats(); s.Identities != 0 {
		t.Errorf("%d identities are left", s.Identities)
	}
	fill()
	if s = r.e.Stats(); s.Memory > full.Memory*101/100 {
		t.Errorf("a second filling takes %d bytes, the first %d", s.Memory, full.Memory)
	}
}

// TestReclaimIsBounded lets very much expire at once: each call takes back a few.
func TestReclaimIsBounded(t *testing.T) {
	const n = 5000
	c := testConfig()
	c.RateBuckets = n
	r := newRig(t, c)
	for i := range n {
		r.ask(numbered(i, 1000, 10, 1))
	}
	r.pass(60_000 * nsPerMs)
	r.ask(numbered(1, 1000, 10, 1))
	if gone := n - r.e.Stats().Buckets; gone > stepsPerCall+stepsPerBlock || gone == 0 {
		t.Errorf("one call took back %d buckets", gone)
	}
	if r.e.Reclaim(r.now, 100); n-r.e.Stats().Buckets > 100+stepsPerCall+stepsPerBlock {
		t.Error("Reclaim did more steps than it was told")
	}
	calls := 0
	for r.e.Reclaim(r.now, 100) {
		calls++
	}
	if s := r.e.Stats(); s.Buckets > 1 || calls > n/50 {
		t.Errorf("%d buckets are left after %d calls", s.Buckets, calls)
	}
}

// TestShrink takes the slabs of buckets and trackers back that were large once.
func TestShrink(t *testing.T) {
	r := newRig(t, testConfig())
	w := watch{"service", 1000, 32, 0}
	for range 200 {
		r.ask(take("a", 1000, 1000, 1))
		r.report(w.took(1))
		r.pass(1000)
	}
	if s := r.e.Stats(); s.Groups != maxGroups || s.Samples != 32 {
		t.Fatalf("%d groups, %d samples", s.Groups, s.Samples)
	}
	for range 30 {
		r.pass(100 * nsPerMs)
		r.ask(take("a", 1000, 1000, 1))
		r.report(w.took(1))
	}
	s := r.e.Stats()
	if s.Groups > 32 || s.Samples > 32 {
		t.Errorf("10 live consumptions hold %d groups, 10 samples %d", s.Groups, s.Samples)
	}
	if r.ask(take("a", 1000, 1000, 0)); r.ans.Rates[0] != 10 {
		t.Errorf("%d tokens are live, want 10", r.ans.Rates[0])
	}
	for range 30 {
		r.pass(400 * nsPerMs)
		r.ask(take("a", 1000, 1000, 1))
		r.report(w.took(1))
	}
	if s := r.e.Stats(); s.Groups > 8 || s.Samples > 8 {
		t.Errorf("3 live consumptions hold %d groups, 3 samples %d", s.Groups, s.Samples)
	}
	for range 11 {
		r.pass(200 * nsPerMs)
		r.ask()
	}
	if s := r.e.Stats(); s.Groups != 0 || s.Samples != 0 || s.Buckets != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// TestWithoutMemory lets a bucket's slab grow no further: it gets coarse and stays strict.
func TestWithoutMemory(t *testing.T) {
	for _, items := range []int{0, slabChunk} {
		b := newEngineBucket(10, 100)
		b.b.mem.limit = items
		log := &exactLog{window: 10 * nsPerMs, rate: 100}
		if items > 0 { // one chunk, of slabs of 4
			b.take(1, 1)
			b.take(2, 1)
			log.add(1, 1)
			log.add(2, 1)
		}
		granted := 0
		for i := range int64(100_000) {
			now := 3 + i*7919
			log.expire(now)
			if ok, live := b.take(now, 1); ok {
				granted++
				log.add(now, 1)
			} else if live < log.live {
				t.Fatalf("%d tokens are shown, %d are live", live, log.live)
			}
			if log.live > 100 {
				t.Fatalf("%d tokens are live of 100", log.live)
			}
		}
		if granted < 100 {
			t.Errorf("with %d items only %d of 100000 are granted", items, granted)
		}
	}
}

// TestShrunkWithoutMemory: a bucket that is back to one group, and finds no memory for a second, lets
// that one take in all.
func TestShrunkWithoutMemory(t *testing.T) {
	b := newEngineBucket(10, 100)
	for _, at := range []int64{1, 2, 5 * nsPerMs} {
		b.take(at, 1)
	}
	b.b.mem.limit = 0
	for k, at := range []int64{12 * nsPerMs, 13 * nsPerMs, 14 * nsPerMs} {
		if ok, live := b.take(at, 1); !ok || live != uint32(k+2) || b.groupCount() != 1 {
			t.Errorf("at %d ms: %t, %d tokens in %d groups", at/nsPerMs, ok, live, b.groupCount())
		}
	}
}

// TestIdleEngineIsSmall has a server take on very many tenants that ask nothing.
func TestIdleEngineIsSmall(t *testing.T) {
	const n = 100
	c := testConfig()
	c.Identities, c.AnswerBytes = 0, 0
	engines := make([]*Engine, n)
	before := heapBytes()
	for i := range engines {
		engines[i] = newRig(t, c).e
	}
	took := (heapBytes() - before) / n
	if says := engines[0].Stats().Memory; took > 12_000 || says > took*101/100 || says < took*3/4 {
		t.Errorf("an engine without state takes %d bytes, and says %d", took, says)
	}
}

// TestWorstCase fills every quota and compares what is held with what was computed.
func TestWorstCase(t *testing.T) {
	c := testConfig()
	c.RateBuckets, c.LatencyServices, c.LatencyBufferSize = 1000, 200, 256
	c.Identities, c.AnswerBytes, c.DedupTTLMax, c.Pacing = 20_000, 1<<20, 2000, true
	r := newRig(t, c)
	for k := range 129 {
		for i := 0; i < 1000; i += 20 {
			var blocks []wire.Resource
			for j := range 20 {
				blocks = append(blocks, numbered(i+j, 1<<31, 1<<31, 1))
			}
			if v := r.send(r.header(), wire.Request{DedupTTL: 2000, Resources: blocks}); v != Granted {
				t.Fatal(v)
			}
		}
		for i := range 200 {
			r.report(watch{string(rune('a' + i)), 1 << 31, 256, 0}.took(5), watch{string(rune('a' + i)), 1 << 31, 256, 0}.took(7))
		}
		r.pass(3000*nsPerMs + int64(k))
	}
	for i := range 200 {
		for k := range uint32(maxPacers + 1) {
			r.guard(watch{string(rune('a' + i)), 1 << 31, 256, 0}.below(1000 + k))
		}
	}
	var reads []wire.Resource
	for i := range 10 {
		reads = append(reads, numbered(i, 1<<31, 1<<31, 0))
	}
	for range 20_000 {
		r.ask(reads...)
	}
	s := r.e.Stats()
	if s.Groups != 128*1000 || s.Samples != 256*200 || s.Identities != 20_000 || s.Pacers != 200*maxPacers {
		t.Fatalf("not full: %+v", s)
	}
	if worst := c.WorstCase(); s.Memory > worst || s.Memory < worst*9/10 {
		t.Errorf("%d bytes are held, computed were %d", s.Memory, worst)
	}
}

// Reclaim gives back every page of answers that is over, also when hardly anything else is.
func TestReclaimAnswers(t *testing.T) {
	r := newRig(t, testConfig())
	blocks := make([]wire.Resource, 20)
	for i := range blocks {
		blocks[i] = numbered(i, 1000, 1<<31, 1)
	}
	for range 1000 {
		r.ask(blocks...)
	}
	if r.e.answers.newest-r.e.answers.oldest < 3 {
		t.Fatal("too few pages to tell")
	}
	r.pass(100 * nsPerMs)
	for r.e.Reclaim(r.now, 2) {
	}
	if s := r.e.Stats(); s.Answers != 0 || s.Identities == 0 {
		t.Errorf("%d answers and %d identities are left, want no answers", s.Answers, s.Identities)
	}
}

// TestReclaimKeepsUp makes as many buckets and trackers a call as fit into a datagram, which live for a
// call only: they do not pile up.
func TestReclaimKeepsUp(t *testing.T) {
	c := testConfig()
	c.RateBuckets, c.LatencyServices = 1<<20, 1<<20
	r := newRig(t, c)
	const blocks = 30
	for i := range 1000 {
		var resources []wire.Resource
		var obs []wire.Observation
		for k := range blocks {
			resources = append(resources, numbered(i*blocks+k, 1, 9, 1))
			w := wire.Observation{TTL: 1, MaxSamples: uint32(1 + i*blocks + k)}
			obs = append(obs, w)
		}
		r.ask(resources...)
		r.report(obs...)
		r.pass(3 * nsPerMs)
		if s := r.e.Stats(); s.Buckets > 4*blocks || s.Trackers > 4*blocks {
			t.Fatalf("after %d calls %d buckets and %d trackers are held, of which %d are live", i+1, s.Buckets, s.Trackers, blocks)
		}
	}
	if r.e.Reclaim(r.now, 0) {
		t.Error("no steps at all, and there is more to do")
	}
}

// TestMemoryForAllSizes has a bucket of each size of slab at once, which is when most memory lies in
// pieces: there is enough for every one to be exact.
func TestMemoryForAllSizes(t *testing.T) {
	classes := int(slabClass(maxGroups)) + 1
	for n := classes; n < classes+9; n++ {
		c := testConfig()
		c.RateBuckets = uint32(n)
		r := newRig(t, c)
		for k := range n {
			groups := maxGroups
			if k < classes {
				groups = slabItems(uint8(k))
			}
			for range groups {
				r.ask(numbered(k, 60_000, 1000, 1))
				r.pass(1000)
			}
		}
		b := &r.e.buckets
		for i := uint32(1); i <= uint32(n); i++ {
			want := maxGroups
			if int(i) <= classes {
				want = slabItems(uint8(i - 1))
			}
			if got := int(b.pool.at(i).count); got != want {
				t.Errorf("of %d buckets, number %d has %d groups of %d consumptions", n, i, got, want)
			}
		}
	}
}
