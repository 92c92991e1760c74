package limiter

import (
	"math"
	"slices"
	"testing"

	"github.com/weirhq/weir/wire"
)

// TestDecideTogether holds the rule that a request is decided as a whole.
func TestDecideTogether(t *testing.T) {
	r := newRig(t, testConfig())
	steps := []struct {
		name     string
		blocks   []wire.Resource
		want     Verdict
		deficits []uint16
		rates    []uint32
	}{
		{"two buckets", []wire.Resource{take("a", 1000, 10, 4), take("b", 1000, 3, 1)}, Granted, []uint16{0, 0}, []uint32{4, 1}},
		{"one of them is full", []wire.Resource{take("a", 1000, 10, 4), take("b", 1000, 3, 3)}, Rejected, []uint16{0, 1}, []uint32{4, 1}},
		{"nothing was consumed", []wire.Resource{take("a", 1000, 10, 0), take("b", 1000, 3, 0)}, Granted, []uint16{0, 0}, []uint32{4, 1}},
		{"repeated bucket", []wire.Resource{take("a", 1000, 10, 2), take("b", 1000, 3, 1), take("a", 1000, 10, 3)}, Granted, []uint16{0, 0, 0}, []uint32{9, 2, 9}},
		{"repeated bucket over", []wire.Resource{take("a", 1000, 10, 1), take("a", 1000, 10, 2), take("a", 1000, 10, 3)}, Rejected, []uint16{0, 2, 3}, []uint32{9, 9, 9}},
		{"partly over", []wire.Resource{take("c", 1000, 10, 7), take("c", 1000, 10, 7)}, Rejected, []uint16{0, 4}, []uint32{0, 0}},
		{"more than the limit", []wire.Resource{take("c", 1000, 10, 65535)}, Rejected, []uint16{65525}, []uint32{0}},
		{"exactly the limit", []wire.Resource{take("c", 1000, 10, 10)}, Granted, []uint16{0}, []uint32{10}},
		{"no limit", []wire.Resource{take("d", 1000, 0, 1)}, Rejected, []uint16{1}, []uint32{0}},
		{"no window", []wire.Resource{take("d", 0, 10, 1)}, Rejected, []uint16{1}, []uint32{0}},
		{"reads need nothing", []wire.Resource{take("d", 1000, 0, 0), take("d", 0, 10, 0)}, Granted, []uint16{0, 0}, []uint32{0, 0}},
		{"nothing", nil, Granted, nil, nil},
	}
	for _, s := range steps {
		if v := r.ask(s.blocks...); v != s.want {
			t.Errorf("%s: %v, want %v", s.name, v, s.want)
		}
		if !slices.Equal(r.ans.Deficits, s.deficits) {
			t.Errorf("%s: deficits %v, want %v", s.name, r.ans.Deficits, s.deficits)
		}
		if !slices.Equal(r.ans.Rates, s.rates) {
			t.Errorf("%s: rates %v, want %v", s.name, r.ans.Rates, s.rates)
		}
	}
	if n := r.e.Stats().Buckets; n != 3 {
		t.Errorf("%d live buckets, want 3: reads and rejections make none", n)
	}
}

// TestDeficitOfLargest adds up what is more than 32 bits together.
func TestDeficitOfLargest(t *testing.T) {
	for _, c := range []struct {
		live   uint32
		asked  uint64
		tokens uint32
		want   uint32
	}{
		{math.MaxUint32, 0, 0, 0},
		{math.MaxUint32, 0, 1, 1},
		{math.MaxUint32 - 1, 0, 1, 0},
		{math.MaxUint32 - 1, 0, 65535, 65534},
		{math.MaxUint32 - 10, 10, 0, 0},
		{math.MaxUint32 - 10, 11, 3, 3},
		{1, math.MaxUint32, 7, 7},
	} {
		d := demand{key: bucketKey{window: 1, rate: math.MaxUint32}, live: c.live, asked: c.asked}
		if got := d.deficit(c.tokens); got != c.want {
			t.Errorf("%d live, %d asked before, %d more: a deficit of %d, want %d", c.live, c.asked, c.tokens, got, c.want)
		}
	}
}
