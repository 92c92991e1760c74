package apikey

import (
	"fmt"
	"math"
	"math/bits"
)

// Quotas bounds what a tenant may use. Who enforces which is told under "API
// keys" in docs/protocol.md.
//
// Format 1 holds only some values ([Quotas.Validate]); a legacy key holds any
// value of the first five and has no RateWindow.
type Quotas struct {
	// RateBuckets is how many buckets a server keeps for the tenant: in format 1
	// a power of two up to 1<<24.
	RateBuckets uint32
	// LatencyServices is how many latency trackers a server keeps: in format 1 a
	// power of two up to 1<<24.
	LatencyServices uint32
	// MetricsLabels is how many distinct labels a server counts apart: in format
	// 1 a power of two up to 1<<31.
	MetricsLabels uint32
	// LatencyBufferSize is how many samples a tracker keeps: in format 1 a power
	// of two up to 1<<15.
	LatencyBufferSize uint32
	// DedupTTL is the longest time, in milliseconds, for which a request may ask
	// to be remembered: in format 1 a multiple of 10 from 10 to 2000.
	DedupTTL uint32
	// RateWindow is the longest window of a bucket in milliseconds: in format 1 a
	// power of two up to 1<<30, or 1<<32-1, which means unlimited.
	RateWindow uint32
}

// DefaultQuotas returns the quotas that a key has unless told otherwise: 65536
// buckets, 1024 trackers, 4096 labels, 32 samples, 300 ms, unlimited window.
func DefaultQuotas() Quotas {
	return Quotas{
		RateBuckets:       65536,
		LatencyServices:   1024,
		MetricsLabels:     4096,
		LatencyBufferSize: 32,
		DedupTTL:          300,
		RateWindow:        math.MaxUint32,
	}
}

// The quota word of format 1, low bits first. A count is 2 to its exponent.
const (
	maxRateBucketsExp  = 24
	maxServicesExp     = 24
	maxLabelsExp       = 31
	maxBufferExp       = 15
	maxWindowExp       = 30
	unlimitedWindowExp = 31

	dedupUnit    = 10 // ms
	maxDedupCode = 200

	shiftServices = 5
	shiftLabels   = 10
	shiftBuffer   = 15
	shiftDedup    = 19
	shiftWindow   = 27
)

// Validate reports whether a key of format 1 can hold the quotas. The error
// names the field.
func (q Quotas) Validate() error {
	for _, c := range [...]struct {
		field string
		value uint32
		exp   int
	}{
		{"RateBuckets", q.RateBuckets, maxRateBucketsExp},
		{"LatencyServices", q.LatencyServices, maxServicesExp},
		{"MetricsLabels", q.MetricsLabels, maxLabelsExp},
		{"LatencyBufferSize", q.LatencyBufferSize, maxBufferExp},
	} {
		if !powerOfTwo(c.value, c.exp) {
			return fmt.Errorf("apikey: quota %s: %d is not a power of two from 1 to %d, which is all that a key can hold", c.field, c.value, uint32(1)<<c.exp)
		}
	}
	if q.DedupTTL%dedupUnit != 0 || q.DedupTTL < dedupUnit || q.DedupTTL > maxDedupCode*dedupUnit {
		return fmt.Errorf("apikey: quota DedupTTL: %d ms is not a multiple of %d ms from %d to %d, which is all that a key can hold", q.DedupTTL, dedupUnit, dedupUnit, maxDedupCode*dedupUnit)
	}
	if q.RateWindow != math.MaxUint32 && !powerOfTwo(q.RateWindow, maxWindowExp) {
		return fmt.Errorf("apikey: quota RateWindow: %d ms is neither a power of two from 1 to %d nor %d (unlimited), which is all that a key can hold", q.RateWindow, uint32(1)<<maxWindowExp, uint32(math.MaxUint32))
	}
	return nil
}

// Round returns the quotas that a key of format 1 can hold and that come
// nearest to q from above, or the largest where there are none above, and one
// sentence for each field that was changed. The result passes
// [Quotas.Validate].
func (q Quotas) Round() (Quotas, []string) {
	var notes []string
	note := func(field string, was, is uint32) uint32 {
		if was != is {
			notes = append(notes, fmt.Sprintf("%s: %d rounded to %d", field, was, is))
		}
		return is
	}
	r := Quotas{
		RateBuckets:       note("RateBuckets", q.RateBuckets, roundCount(q.RateBuckets, maxRateBucketsExp)),
		LatencyServices:   note("LatencyServices", q.LatencyServices, roundCount(q.LatencyServices, maxServicesExp)),
		MetricsLabels:     note("MetricsLabels", q.MetricsLabels, roundCount(q.MetricsLabels, maxLabelsExp)),
		LatencyBufferSize: note("LatencyBufferSize", q.LatencyBufferSize, roundCount(q.LatencyBufferSize, maxBufferExp)),
		DedupTTL:          note("DedupTTL", q.DedupTTL, roundDedup(q.DedupTTL)),
		RateWindow:        note("RateWindow", q.RateWindow, roundWindow(q.RateWindow)),
	}
	return r, notes
}

// word packs quotas that pass Validate.
func (q Quotas) word() uint32 {
	window := uint32(unlimitedWindowExp)
	if q.RateWindow != math.MaxUint32 {
		window = exponent(q.RateWindow)
	}
	return exponent(q.RateBuckets) |
		exponent(q.LatencyServices)<<shiftServices |
		exponent(q.MetricsLabels)<<shiftLabels |
		exponent(q.LatencyBufferSize)<<shiftBuffer |
		q.DedupTTL/dedupUnit<<shiftDedup |
		window<<shiftWindow
}

// quotasFromWord is the inverse of word; codes that mean nothing are errors.
func quotasFromWord(w uint32) (Quotas, error) {
	buckets := w & 0x1f
	services := w >> shiftServices & 0x1f
	labels := w >> shiftLabels & 0x1f
	buffer := w >> shiftBuffer & 0xf
	dedup := w >> shiftDedup & 0xff
	window := w >> shiftWindow

	if buckets > maxRateBucketsExp {
		return Quotas{}, invalid("the exponent of quota RateBuckets is %d, above %d", buckets, maxRateBucketsExp)
	}
	if services > maxServicesExp {
		return Quotas{}, invalid("the exponent of quota LatencyServices is %d, above %d", services, maxServicesExp)
	}
	if dedup < 1 || dedup > maxDedupCode {
		return Quotas{}, invalid("the code of quota DedupTTL is %d, not 1 to %d", dedup, maxDedupCode)
	}
	q := Quotas{
		RateBuckets:       1 << buckets,
		LatencyServices:   1 << services,
		MetricsLabels:     1 << labels,
		LatencyBufferSize: 1 << buffer,
		DedupTTL:          dedup * dedupUnit,
		RateWindow:        math.MaxUint32,
	}
	if window != unlimitedWindowExp {
		q.RateWindow = 1 << window
	}
	return q, nil
}

func powerOfTwo(v uint32, maxExp int) bool {
	return bits.OnesCount32(v) == 1 && bits.TrailingZeros32(v) <= maxExp
}

func exponent(v uint32) uint32 {
	return uint32(bits.TrailingZeros32(v))
}

func roundCount(v uint32, maxExp int) uint32 {
	if v <= 1 {
		return 1
	}
	return 1 << min(bits.Len32(v-1), maxExp)
}

func roundDedup(v uint32) uint32 {
	if v > maxDedupCode*dedupUnit {
		return maxDedupCode * dedupUnit
	}
	return max(1, (v+dedupUnit-1)/dedupUnit) * dedupUnit
}

func roundWindow(v uint32) uint32 {
	if v > 1<<maxWindowExp {
		return math.MaxUint32
	}
	return roundCount(v, maxWindowExp)
}
