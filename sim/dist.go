package sim

import (
	"fmt"
	"math/bits"
	"time"
)

// A Dist is a distribution of durations that are not negative. The zero value is always 0. It is
// drawn from by a whole number alone, so that a draw is the same on every machine.
type Dist struct {
	kind distKind
	a, b time.Duration
	log  int64 // of a lognormal one: the standard deviation of the binary logarithm, in units of 2^-40
	data *empirical
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

// At returns the duration below which a share of word/2^64 of the distribution lies: its inverse.
// A word drawn at random makes it a draw.
func (d Dist) At(word uint64) time.Duration {
	switch d.kind {
	case distUniform:
		return d.a + time.Duration(share(word, uint64(d.b-d.a)+1))
	case distExponential:
		return exponential(d.a, word)
	}
	return d.a
}

// exponential returns -ln(1 - word/2^64) times the mean.
func exponential(mean time.Duration, word uint64) time.Duration {
	if word == 0 {
		return 0
	}
	l := 64<<logBits - log2(-word) // binary, of the share above
	hi, lo := bits.Mul64(share(l, ln2), uint64(mean))
	return min(time.Duration(hi<<(64-logBits)|lo>>logBits), MaxDuration)
}

// IsZero reports whether the distribution is always 0.
func (d Dist) IsZero() bool { return d.kind == distConstant && d.a == 0 }

// String returns the text that [ParseDist] reads.
func (d Dist) String() string {
	switch d.kind {
	case distUniform:
		return fmt.Sprintf("uniform %v %v", d.a, d.b)
	}
	return d.a.String()
}

// share returns the whole part of n * word / 2^64.
func share(word, n uint64) uint64 {
	hi, _ := bits.Mul64(word, n)
	return hi
}

type empirical struct{}
