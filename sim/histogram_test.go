package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestHistogramRanks holds quantiles to the nearest rank, where values are small enough to be exact.
func TestHistogramRanks(t *testing.T) {
	var h Histogram
	if h.Quantile(500_000) != 0 || h.Mean() != 0 || h.CDF() != nil {
		t.Error("an empty histogram has values")
	}
	for v := range int64(10) {
		h.Add(10 * (v + 1))
	}
	for _, tt := range []struct {
		ppm  PerMillion
		want int64
	}{{0, 10}, {100_000, 10}, {100_001, 20}, {500_000, 50}, {500_001, 60}, {999_999, 100}, {1_000_000, 100}} {
		if got := h.Quantile(tt.ppm); got != tt.want {
			t.Errorf("quantile %d ppm: %d, want %d", tt.ppm, got, tt.want)
		}
	}
	if h.Count() != 10 || h.Min() != 10 || h.Max() != 100 || h.Mean() != 55 {
		t.Errorf("count %d, min %d, max %d, mean %d", h.Count(), h.Min(), h.Max(), h.Mean())
	}
}

// TestHistogramAgainstSorted compares with all values kept and sorted, merged from two halves.
func TestHistogramAgainstSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(
			rapid.Int64Range(0, 3000), rapid.Int64Range(0, 1e11), rapid.Int64Range(histogramTop-5, histogramTop*4),
		), 1, 200).Draw(t, "values")
		split := rapid.IntRange(0, len(values)).Draw(t, "split")
		var h, other Histogram
		for i, v := range values {
			if i < split {
				h.Add(v)
			} else {
				other.Add(v)
			}
		}
		h.Merge(&other)
		slices.Sort(values)
		n := int64(len(values))
		sum := int64(0)
		for _, v := range values {
			sum += v
		}
		if h.Count() != n || h.Min() != values[0] || h.Max() != values[n-1] || h.Mean() != sum/n {
			t.Fatalf("count %d, min %d, max %d, mean %d of %v", h.Count(), h.Min(), h.Max(), h.Mean(), values)
		}
		ppm := PerMillion(rapid.IntRange(0, 1_000_000).Draw(t, "ppm"))
		at := 0
		for int64(at+1)*1_000_000 < n*int64(ppm) {
			at++
		}
		exact := values[at]
		if got := h.Quantile(ppm); exact <= histogramTop && (got < exact || got > exact+exact/1000) {
			t.Fatalf("quantile %d ppm of %v: %d, want %d", ppm, values, got, exact)
		}
	})
}

func TestHistogramJSON(t *testing.T) {
	var h Histogram
	empty, err := json.Marshal(&h)
	if err != nil || string(empty) != `{"count":0}` {
		t.Fatalf("%s, %v", empty, err)
	}
	h.Add(7)
	full, err := json.Marshal(&h)
	if want := `{"count":1,"min":7,"mean":7,"p50":7,"p90":7,"p99":7,"p99_9":7,"p99_99":7,"max":7,"cdf":[{"share_ppm":0,"value":7},`; err != nil || !strings.HasPrefix(string(full), want) {
		t.Fatalf("%s, %v", full, err)
	}
	points := h.CDF()
	if !slices.IsSortedFunc(points, func(a, b Point) int { return int(a.Share) - int(b.Share) }) || points[len(points)-1].Share != 1_000_000 {
		t.Errorf("the shares of the distribution: %v", points)
	}
}
