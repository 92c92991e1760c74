package limiter

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// numbered is a demand on the n-th of many buckets.
func numbered(n int, windowMs, rate uint32, tokens uint16) wire.Resource {
	var id ident.ID
	binary.LittleEndian.PutUint64(id[:], uint64(n))
	return wire.Resource{Bucket: id, Window: windowMs, Rate: rate, Tokens: tokens}
}

func TestBucketQuota(t *testing.T) {
	c := testConfig()
	c.RateBuckets = 3
	r := newRig(t, c)
	if v := r.ask(numbered(1, 1000, 9, 1), numbered(2, 1000, 9, 1)); v != Granted {
		t.Fatal(v)
	}
	steps := []struct {
		name     string
		blocks   []wire.Resource
		want     Verdict
		deficits []uint16
		rates    []uint32
	}{
		{"two more, room for one", []wire.Resource{numbered(3, 1000, 9, 1), numbered(4, 1000, 9, 5)}, Rejected, []uint16{0, 5}, []uint32{0, 0}},
		{"the same in two blocks", []wire.Resource{numbered(3, 1000, 9, 1), numbered(4, 1000, 9, 2), numbered(4, 1000, 9, 0), numbered(4, 1000, 9, 3)}, Rejected, []uint16{0, 2, 0, 3}, []uint32{0, 0, 0, 0}},
		{"one more, in two blocks", []wire.Resource{numbered(3, 1000, 9, 1), numbered(3, 1000, 9, 1)}, Granted, []uint16{0, 0}, []uint32{2, 2}},
		{"a read of a fifth", []wire.Resource{numbered(5, 1000, 9, 0), numbered(1, 1000, 9, 1)}, Granted, []uint16{0, 0}, []uint32{0, 2}},
		{"full", []wire.Resource{numbered(1, 1000, 9, 1), numbered(6, 1000, 9, 1)}, Rejected, []uint16{0, 1}, []uint32{2, 0}},
		{"another rate is another bucket", []wire.Resource{numbered(1, 1000, 8, 1)}, Rejected, []uint16{1}, []uint32{0}},
		{"another window too", []wire.Resource{numbered(1, 1001, 9, 1)}, Rejected, []uint16{1}, []uint32{0}},
	}
	for _, s := range steps {
		if v := r.ask(s.blocks...); v != s.want || !slices.Equal(r.ans.Deficits, s.deficits) || !slices.Equal(r.ans.Rates, s.rates) {
			t.Errorf("%s: %v, deficits %v, rates %v; want %v, %v, %v", s.name, v, r.ans.Deficits, r.ans.Rates, s.want, s.deficits, s.rates)
		}
	}
	if s := r.e.Stats(); s.Buckets != 3 || s.RefusedBlocks != 6 {
		t.Errorf("%d buckets, %d blocks refused", s.Buckets, s.RefusedBlocks)
	}
	// Room comes back at the very instant at which a bucket is empty.
	r.pass(1000*nsPerMs - 1)
	if v := r.ask(numbered(7, 1000, 9, 1)); v != Rejected {
		t.Errorf("a nanosecond too early: %v", v)
	}
	r.pass(1)
	if v := r.ask(numbered(7, 1000, 9, 1), numbered(8, 1000, 9, 1), numbered(9, 1000, 9, 1)); v != Granted {
		t.Errorf("when all are empty: %v", v)
	}
}

// TestRevivedBucket uses a bucket whose tokens have expired, and which is still there, in the same
// request as new ones that need its room.
func TestRevivedBucket(t *testing.T) {
	c := testConfig()
	c.RateBuckets = 2
	r := newRig(t, c)
	r.ask(numbered(1, 10, 9, 3), numbered(2, 10, 9, 3))
	r.pass(10 * nsPerMs)
	if v := r.ask(numbered(1, 10, 9, 4), numbered(3, 10, 9, 5)); v != Granted || r.ans.Rates[0] != 4 || r.ans.Rates[1] != 5 {
		t.Errorf("%v with %v", v, r.ans.Rates)
	}
	if v := r.ask(numbered(1, 10, 9, 5), numbered(3, 10, 9, 4), numbered(2, 10, 9, 0)); v != Granted || !slices.Equal(r.ans.Rates, []uint32{9, 9, 0}) {
		t.Errorf("%v with %v", v, r.ans.Rates)
	}
}

func TestTrackerQuota(t *testing.T) {
	c := testConfig()
	c.LatencyServices = 2
	r := newRig(t, c)
	w := []watch{{"one", 100, 10, 0}, {"two", 100, 10, 0}, {"three", 100, 10, 0}}
	if v := r.report(w[0].took(10), w[1].took(20), w[2].took(30), w[1].took(20), w[2].took(30)); v != Observed {
		t.Fatal(v)
	}
	if s := r.e.Stats(); s.Trackers != 2 || s.DroppedBlocks != 2 {
		t.Errorf("%d trackers, %d blocks dropped; want 2 and 2", s.Trackers, s.DroppedBlocks)
	}
	for i, want := range []uint32{10, 20, 0} {
		if got := r.guard(w[i].below(1)); got != want {
			t.Errorf("tracker %d: %d, want %d", i, got, want)
		}
	}
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{w[2].below(1)}}); v != Granted {
		t.Errorf("a guard on a tracker that there is no room for: %v", v)
	}
	r.pass(100 * nsPerMs)
	r.report(w[2].took(30), w[0].took(10))
	if got := r.guard(w[2].below(1)); got != 30 || r.e.Stats().DroppedBlocks != 2 {
		t.Errorf("room did not come back at the TTL: %d", got)
	}
}

// TestTrackerRoomComesBack at the very instant at which a tracker is empty.
func TestTrackerRoomComesBack(t *testing.T) {
	c := testConfig()
	c.LatencyServices = 1
	r := newRig(t, c)
	one, two := watch{"one", 20, 10, 0}, watch{"two", 20, 10, 0}
	r.report(one.took(10))
	r.pass(20*nsPerMs - 1)
	if r.report(two.took(20)); r.guard(two.below(1)) != 0 {
		t.Error("a nanosecond too early there is room")
	}
	r.pass(1)
	if r.report(two.took(20)); r.guard(two.below(1)) != 20 {
		t.Error("there is no room when the other is empty")
	}
}

// TestBufferQuota keeps the last samples that quota and definition allow.
func TestBufferQuota(t *testing.T) {
	c := testConfig()
	c.LatencyBufferSize, c.Estimator = 4, Min
	r := newRig(t, c)
	wide, narrow := watch{"wide", 1000, 100, 0}, watch{"narrow", 1000, 2, 0}
	for i := range uint32(10) {
		r.report(wide.took(i+1), narrow.took(i+1))
	}
	if got := r.guard(wide.below(1)); got != 7 {
		t.Errorf("the least of the last 4 is %d, want 7", got)
	}
	if got := r.guard(narrow.below(1)); got != 9 {
		t.Errorf("the least of the last 2 is %d, want 9", got)
	}
	// A lowered quota drains as reports come.
	c.LatencyBufferSize = 2
	if err := r.e.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	if got := r.guard(wide.below(1)); got != 7 {
		t.Errorf("a lowered quota threw samples away: %d, want 7", got)
	}
	for i, want := range []uint32{9, 11, 12} {
		r.report(wide.took(uint32(11 + i)))
		if got := r.guard(wide.below(1)); got != want {
			t.Errorf("report %d after the quota was lowered: %d, want %d", i, got, want)
		}
	}
}

func TestReconfigure(t *testing.T) {
	c := testConfig()
	r := newRig(t, c)
	w := watch{"service", 60_000, 100, 0}
	for i := range 10 {
		r.ask(numbered(i, 60_000, 100, 1))
		r.report(w.took(uint32(10 * (i + 1))))
	}
	h := r.header()
	q := wire.Request{Resources: []wire.Resource{numbered(1, 60_000, 100, 1)}}
	r.send(h, q)

	c.RateBuckets, c.LatencyServices, c.Estimator, c.Start = 5, 1, Mean, 1<<60
	c.AnswerBytes, c.WindowMax, c.DedupTTLMax = 1024, 60_000, 100
	if err := r.e.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	if v := r.send(h, q); v != RepeatGranted {
		t.Errorf("a repeat over a change: %v", v)
	}
	if v := r.ask(numbered(9, 60_000, 100, 1)); v != Granted || r.ans.Rates[0] != 2 {
		t.Errorf("a bucket above the lowered quota: %v with %v", v, r.ans.Rates)
	}
	if v := r.ask(numbered(10, 60_000, 100, 1)); v != Rejected || r.ans.Deficits[0] != 1 {
		t.Errorf("a new bucket above the lowered quota: %v with %v", v, r.ans.Deficits)
	}
	if got := r.guard(w.below(1)); got != 55 {
		t.Errorf("the mean is %d, want 55", got)
	}
	if v := r.ask(numbered(1, 60_001, 100, 1)); v != DropWindow {
		t.Errorf("a window over the lowered quota: %v", v)
	}
	if v := r.send(r.header(), wire.Request{DedupTTL: 101}); v != DropTTL {
		t.Errorf("a TTL over the lowered quota: %v", v)
	}
	c.Identities = 10
	if err := r.e.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	over := r.e.Stats().Identities - 10
	for range over {
		r.pass(61 * nsPerMs) // past the floor that the one before may leave
		if v := r.ask(); v != Granted {
			t.Fatal(v)
		}
	}
	if s := r.e.Stats(); s.Identities != 10 || s.Degraded != uint64(2*over) {
		t.Errorf("%d identities, %d degraded; a lowered bound of 10 drains", s.Identities, s.Degraded)
	}
	r.pass(61 * nsPerMs)
	before := r.e.Stats()
	c.Estimator = 99
	c.RateBuckets = 0
	if err := r.e.Reconfigure(c); err == nil {
		t.Error("an unknown estimator is taken")
	}
	if r.e.Stats() != before || r.ask(numbered(1, 60_000, 100, 1)) != Granted {
		t.Error("a configuration that is refused changes something")
	}
}

func TestConfig(t *testing.T) {
	bad := map[string]func(c *Config){
		"limiter: Config.Identities is -1; use a positive number, or 0 for 1048576":   func(c *Config) { c.Identities = -1 },
		"limiter: Config.AnswerBytes is -1; use a positive number, or 0 for 16777216": func(c *Config) { c.AnswerBytes = -1 },
		"limiter: Config.Estimator is 5; use P50, Min, P90, P99 or Mean":              func(c *Config) { c.Estimator = 5 },
	}
	for want, change := range bad {
		c := testConfig()
		change(&c)
		if _, err := New(c); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if n := c.WorstCase(); n != 0 {
			t.Errorf("an invalid configuration has a worst case of %d bytes", n)
		}
	}
	c, err := Config{RateBuckets: math.MaxUint32, LatencyServices: math.MaxUint32, LatencyBufferSize: math.MaxUint32, Identities: math.MaxInt}.complete()
	if err != nil || c.RateBuckets != MaxRecords || c.LatencyServices != MaxRecords || c.LatencyBufferSize != MaxSamples || c.Identities != MaxRecords {
		t.Errorf("without bounds: %+v, %v", c, err)
	}
	for v := Granted; v < verdicts; v++ {
		if v.String() == "" || v.Dropped() != (v > Observed) {
			t.Errorf("verdict %d: %q, dropped %t", v, v, v.Dropped())
		}
	}
	if s := Verdict(0).String() + verdicts.String() + estimators.String(); s != "Verdict(0)Verdict(13)Estimator(5)" {
		t.Error(s)
	}
}

// TestNoRoomInTheTable: a bucket whose part of the table is full, which no client brings about, is
// rejected like one too many; requests that need no new place are not.
func TestNoRoomInTheTable(t *testing.T) {
	r := newRig(t, testConfig())
	if v := r.ask(numbered(1, 1000, 9, 1)); v != Granted {
		t.Fatal(v)
	}
	b := &r.e.buckets
	key := bucketKey{numbered(2, 1000, 9, 1).Bucket, 1000, 9}
	at := tag(key.hash(b.hash))
	for n := uint32(0); b.index.hasRoom(at); n++ {
		b.index.add(at^n&0xfff, 1)
	}
	if v := r.ask(numbered(1, 1000, 9, 1), numbered(2, 1000, 9, 3)); v != Rejected || !slices.Equal(r.ans.Deficits, []uint16{0, 3}) {
		t.Errorf("%v with %v", v, r.ans.Deficits)
	}
	if v := r.ask(numbered(1, 1000, 9, 1), numbered(2, 1000, 9, 0)); v != Granted {
		t.Errorf("the bucket that is there: %v", v)
	}
}
