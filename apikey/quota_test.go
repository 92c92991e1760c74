package apikey_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/apikey"
)

func TestDefaultQuotas(t *testing.T) {
	want := apikey.Quotas{RateBuckets: 65536, LatencyServices: 1024, MetricsLabels: 4096, LatencyBufferSize: 32, DedupTTL: 300, RateWindow: math.MaxUint32}
	if got := apikey.DefaultQuotas(); got != want {
		t.Errorf("DefaultQuotas() = %+v, want %+v", got, want)
	}
	if err := want.Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		field  string
		set    func(*apikey.Quotas, uint32)
		good   []uint32
		refuse []uint32
	}{
		{
			"RateBuckets", func(q *apikey.Quotas, v uint32) { q.RateBuckets = v },
			[]uint32{1, 2, 1 << 24},
			[]uint32{0, 3, 1<<24 - 1, 1 << 25, math.MaxUint32},
		},
		{
			"LatencyServices", func(q *apikey.Quotas, v uint32) { q.LatencyServices = v },
			[]uint32{1, 2, 1 << 24},
			[]uint32{0, 3, 1<<24 + 1, 1 << 25, math.MaxUint32},
		},
		{
			"MetricsLabels", func(q *apikey.Quotas, v uint32) { q.MetricsLabels = v },
			[]uint32{1, 2, 1 << 31},
			[]uint32{0, 3, 1<<31 + 1, math.MaxUint32},
		},
		{
			"LatencyBufferSize", func(q *apikey.Quotas, v uint32) { q.LatencyBufferSize = v },
			[]uint32{1, 2, 1 << 15},
			[]uint32{0, 3, 1 << 16, math.MaxUint32},
		},
		{
			"DedupTTL", func(q *apikey.Quotas, v uint32) { q.DedupTTL = v },
			[]uint32{10, 20, 1990, 2000},
			[]uint32{0, 1, 9, 11, 2001, 2010, math.MaxUint32},
		},
		{
			"RateWindow", func(q *apikey.Quotas, v uint32) { q.RateWindow = v },
			[]uint32{1, 2, 1 << 30, math.MaxUint32},
			[]uint32{0, 3, 1<<30 + 1, 1 << 31, math.MaxUint32 - 1},
		},
	} {
		for _, v := range c.good {
			q := apikey.DefaultQuotas()
			c.set(&q, v)
			if err := q.Validate(); err != nil {
				t.Errorf("%s = %d: %v", c.field, v, err)
			}
		}
		for _, v := range c.refuse {
			q := apikey.DefaultQuotas()
			c.set(&q, v)
			if err := q.Validate(); err == nil || !strings.Contains(err.Error(), "quota "+c.field+": ") {
				t.Errorf("%s = %d: error %v, want one that names the field", c.field, v, err)
			}
		}
	}
}

// TestHoldable checks over all quotas that a key can hold what Validate passes:
// what goes into a key comes out of its text.
func TestHoldable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := holdable(t)
		if err := q.Validate(); err != nil {
			t.Fatal(err)
		}
		k, err := apikey.New(apikey.AuthNone, 1, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := apikey.Parse(k.Encode())
		if err != nil || back.Quotas() != q {
			t.Errorf("%+v came back as %+v, %v", q, back.Quotas(), err)
		}
		if same, notes := q.Round(); same != q || notes != nil {
			t.Errorf("Round() of holdable %+v = %+v, %q", q, same, notes)
		}
	})
}

func TestRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 3000)), 6, 6).Draw(t, "quotas")
		q := apikey.Quotas{RateBuckets: v[0], LatencyServices: v[1], MetricsLabels: v[2], LatencyBufferSize: v[3], DedupTTL: v[4], RateWindow: v[5]}
		r, notes := q.Round()
		if err := r.Validate(); err != nil {
			t.Fatalf("Round() of %+v: %v", q, err)
		}
		changed := 0
		for _, f := range []struct {
			name    string
			was, is uint32
			largest uint32
			step    func(uint32) uint32 // the next smaller holdable value
		}{
			{"RateBuckets", q.RateBuckets, r.RateBuckets, 1 << 24, half},
			{"LatencyServices", q.LatencyServices, r.LatencyServices, 1 << 24, half},
			{"MetricsLabels", q.MetricsLabels, r.MetricsLabels, 1 << 31, half},
			{"LatencyBufferSize", q.LatencyBufferSize, r.LatencyBufferSize, 1 << 15, half},
			{"DedupTTL", q.DedupTTL, r.DedupTTL, 2000, func(v uint32) uint32 { return v - 10 }},
			{"RateWindow", q.RateWindow, r.RateWindow, math.MaxUint32, func(v uint32) uint32 {
				if v == math.MaxUint32 {
					return 1 << 30
				}
				return v / 2
			}},
		} {
			if f.is < f.was && f.is != f.largest {
				t.Errorf("%s: %d rounded down to %d", f.name, f.was, f.is)
			}
			if below := f.step(f.is); below >= f.was && below != 0 {
				t.Errorf("%s: %d rounded to %d, although %d is nearer", f.name, f.was, f.is, below)
			}
			if f.was != f.is {
				changed++
				if !strings.Contains(strings.Join(notes, "\n"), f.name+": ") {
					t.Errorf("%s: %d rounded to %d without a note", f.name, f.was, f.is)
				}
			}
		}
		if changed != len(notes) {
			t.Errorf("%d fields changed, %d notes: %q", changed, len(notes), notes)
		}
	})
}

func half(v uint32) uint32 { return v / 2 }

// holdable draws quotas that format 1 can hold.
func holdable(t *rapid.T) apikey.Quotas {
	q := apikey.Quotas{
		RateBuckets:       1 << rapid.IntRange(0, 24).Draw(t, "buckets"),
		LatencyServices:   1 << rapid.IntRange(0, 24).Draw(t, "services"),
		MetricsLabels:     1 << rapid.IntRange(0, 31).Draw(t, "labels"),
		LatencyBufferSize: 1 << rapid.IntRange(0, 15).Draw(t, "buffer"),
		DedupTTL:          10 * rapid.Uint32Range(1, 200).Draw(t, "dedup"),
		RateWindow:        math.MaxUint32,
	}
	if exp := rapid.IntRange(0, 31).Draw(t, "window"); exp < 31 {
		q.RateWindow = 1 << exp
	}
	return q
}
