package sim

import (
	"math/bits"
	"time"
)

// A Dist is a distribution of durations that are not negative. The zero value is always 0. It is
// drawn from by a whole number alone, so that a draw is the same on every machine. Values are
// comparable; those of [Empirical] are equal when they are the same.
type Dist struct {
	kind  distKind
	a, b  time.Duration
	sigma uint64 // of a lognormal one: the standard deviation of the binary logarithm, with sigmaBits behind the point
	data  *empirical
}

type distKind uint8

const (
	distConstant distKind = iota
	distUniform
	distExponential
	distLognormal
	distEmpirical
)

// MaxDuration is the longest duration that a [Dist] yields, and the longest that it takes as a
// parameter.
const MaxDuration = 24 * time.Hour

// Constant returns the distribution that is always d.
func Constant(d time.Duration) Dist { return Dist{a: d} }

// Uniform returns the distribution in which all durations from lo to hi are equally likely.
func Uniform(lo, hi time.Duration) Dist { return Dist{kind: distUniform, a: lo, b: hi} }

// Exponential returns the distribution of the times between events that happen at random, so far
// apart on average.
func Exponential(mean time.Duration) Dist { return Dist{kind: distExponential, a: mean} }

// Lognormal returns the lognormal distribution with this median and 99th percentile.
func Lognormal(median, p99 time.Duration) Dist {
	d := Dist{kind: distLognormal, a: median, b: p99}
	if d.Validate() == nil {
		hi, lo := bits.Mul64(log2(uint64(p99))-log2(uint64(median)), 1<<sigmaBits)
		d.sigma, _ = bits.Div64(hi, lo, normal99)
	}
	return d
}

// At returns the duration below which a share of word/2^64 of the distribution lies: its inverse.
// A word drawn at random makes it a draw.
func (d Dist) At(word uint64) time.Duration {
	switch d.kind {
	case distUniform:
		return d.a + time.Duration(share(word, uint64(d.b-d.a)+1))
	case distExponential:
		return exponential(d.a, word)
	case distLognormal:
		return lognormal(d.a, d.sigma, word)
	case distEmpirical:
		return d.data.at(word)
	}
	return d.a
}

// IsZero reports whether the distribution is always 0.
func (d Dist) IsZero() bool { return d.kind == distConstant && d.a == 0 }

// exponential returns -ln(1 - word/2^64) times the mean.
func exponential(mean time.Duration, word uint64) time.Duration {
	if word == 0 {
		return 0
	}
	l := 64<<logBits - log2(-word) // binary, of the share above
	hi, lo := bits.Mul64(share(l, ln2), uint64(mean))
	return min(time.Duration(hi<<(64-logBits)|lo>>logBits), MaxDuration)
}

const sigmaBits = 48

// lognormal returns the median times 2 to the power of sigma times the normal quantile.
func lognormal(median time.Duration, sigma, word uint64) time.Duration {
	z, below := normal(word)
	hi, lo := bits.Mul64(sigma, z)
	l := hi<<(64-sigmaBits) | lo>>sigmaBits
	if below {
		hi, lo = bits.Mul64(uint64(median), negativePower(l))
		return time.Duration(hi<<1 | lo>>63)
	}
	whole := l >> logBits
	if whole >= 63 || uint64(median) > uint64(MaxDuration)>>whole {
		return MaxDuration
	}
	hi, lo = bits.Mul64(uint64(median)<<whole, exp2(l<<(64-logBits)))
	return min(time.Duration(hi<<1|lo>>63), MaxDuration)
}

// share returns the whole part of n * word / 2^64.
func share(word, n uint64) uint64 {
	hi, _ := bits.Mul64(word, n)
	return hi
}
