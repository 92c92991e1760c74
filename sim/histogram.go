package sim

import (
	"encoding/json"
	"math/bits"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms tell values apart to three significant digits up to histogramTop, 73 minutes in
// nanoseconds; what is above counts as that much.
const (
	histogramTop    = 1 << 42
	histogramDigits = 3
)

// A Histogram is how often whole numbers that are not negative occurred. Count, least, greatest and
// mean are exact, quantiles have three significant digits. The zero value is empty. It is not safe
// for concurrent use, and must not be copied once it has values.
type Histogram struct {
	bars           *hdr.Histogram // nil while empty
	count          int64
	least, most    int64
	sumHigh, sumLo uint64
}

// Add counts the value v once; a negative one counts as 0.
func (h *Histogram) Add(v int64) {
	v = max(v, 0)
	if h.bars == nil {
		h.bars = hdr.New(1, histogramTop, histogramDigits)
		h.least = v
	}
	// It refuses only what is out of its range.
	_ = h.bars.RecordValue(min(v, histogramTop))
	h.count++
	h.least, h.most = min(h.least, v), max(h.most, v)
	var carry uint64
	h.sumLo, carry = bits.Add64(h.sumLo, uint64(v), 0)
	h.sumHigh += carry
}

// Merge adds all values of o, which stays as it is.
func (h *Histogram) Merge(o *Histogram) {
	if o.count == 0 {
		return
	}
	if h.bars == nil {
		h.bars = hdr.New(1, histogramTop, histogramDigits)
		h.least = o.least
	}
	h.bars.Merge(o.bars)
	h.count += o.count
	h.least, h.most = min(h.least, o.least), max(h.most, o.most)
	var carry uint64
	h.sumLo, carry = bits.Add64(h.sumLo, o.sumLo, 0)
	h.sumHigh += o.sumHigh + carry
}

// Count returns how many values there are.
func (h *Histogram) Count() int64 { return h.count }

// Min returns the least value, 0 if there is none.
func (h *Histogram) Min() int64 { return h.least }

// Max returns the greatest value, 0 if there is none.
func (h *Histogram) Max() int64 { return h.most }

// Mean returns the arithmetic mean, rounded down, and 0 if there is no value.
func (h *Histogram) Mean() int64 {
	if h.count == 0 {
		return 0
	}
	q, _ := bits.Div64(h.sumHigh%uint64(h.count), h.sumLo, uint64(h.count))
	return int64(q)
}

// Quantile returns the value of rank ceil(ppm/1,000,000 * count), at least 1: the smallest that at
// least that share of all values do not exceed, rounded up within three digits and never above the
// greatest. It is 0 if there is no value.
func (h *Histogram) Quantile(ppm PerMillion) int64 {
	return h.quantiles(ppm)[0]
}

// quantiles returns the quantiles of shares that ascend.
func (h *Histogram) quantiles(ppm ...PerMillion) []int64 {
	values := make([]int64, len(ppm))
	if h.count == 0 {
		return values
	}
	next, below := 0, int64(0)
	for _, bar := range h.bars.Distribution() {
		below += bar.Count
		for next < len(ppm) && below >= rank(h.count, ppm[next]) {
			values[next] = max(min(bar.To, h.most), h.least)
			next++
		}
		if next == len(ppm) {
			return values
		}
	}
	return values
}

// rank returns which of n values in order a quantile is, from 1. n is below 2^43.
func rank(n int64, ppm PerMillion) int64 {
	return max(1, (n*int64(ppm)+999_999)/1_000_000)
}

// A Point is a point of a cumulative distribution: Share of all values do not exceed Value.
type Point struct {
	Share PerMillion `json:"share_ppm"`
	Value int64      `json:"value"`
}

// CDF returns the cumulative distribution at fixed shares, the same for every histogram: each half
// percent up to 99 %, each tenth of a percent up to 99.9 %, each hundredth up to 100 %. It is empty
// if there is no value.
func (h *Histogram) CDF() []Point {
	if h.count == 0 {
		return nil
	}
	var shares []PerMillion
	for s := PerMillion(0); s < 990_000; s += 5_000 {
		shares = append(shares, s)
	}
	for s := PerMillion(990_000); s < 999_000; s += 1_000 {
		shares = append(shares, s)
	}
	for s := PerMillion(999_000); s <= 1_000_000; s += 100 {
		shares = append(shares, s)
	}
	points := make([]Point, len(shares))
	for i, v := range h.quantiles(shares...) {
		points[i] = Point{Share: shares[i], Value: v}
	}
	return points
}

// MarshalJSON writes the count, and if there are values the least, the mean, the usual quantiles,
// the greatest and the distribution of [Histogram.CDF]. The unit is the histogram's.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	if h.count == 0 {
		return []byte(`{"count":0}`), nil
	}
	q := h.quantiles(500_000, 900_000, 990_000, 999_000, 999_900)
	return json.Marshal(struct {
		Count int64   `json:"count"`
		Min   int64   `json:"min"`
		Mean  int64   `json:"mean"`
		P50   int64   `json:"p50"`
		P90   int64   `json:"p90"`
		P99   int64   `json:"p99"`
		P999  int64   `json:"p99_9"`
		P9999 int64   `json:"p99_99"`
		Max   int64   `json:"max"`
		CDF   []Point `json:"cdf"`
	}{h.count, h.least, h.Mean(), q[0], q[1], q[2], q[3], q[4], h.most, h.CDF()})
}
