package limiter

import (
	"math"
	"math/rand/v2"
)

// demandOf is one demand of a pattern: so long after the one before it, so many tokens.
type demandOf struct {
	after  int64
	tokens uint32
}

// pattern is a stream of demands on one bucket.
type pattern struct {
	name   string
	window uint32 // ms
	rate   uint32
	start  int64 // when it begins
	next   func() demandOf
	n      int
	// steady patterns are those of which the engine promises a share of what an exact log grants, and
	// so many demands are a window's worth.
	steady  bool
	demands int
}

const day = 24 * 3600 * 1000 // ms

// patterns returns streams that are made to break windows: windows from a millisecond to the longest
// there is, limits around the number of groups and far from it. A window's worth of a steady pattern
// is at most so many demands.
func patterns(seed uint64, most int) (all []pattern) {
	windows := []uint32{1, 7, 1000, 60_000, day, 49 * day, math.MaxUint32}
	for _, w := range windows {
		rates := []uint32{1, 2, 63, 64, 65, 100, 127, 128, 129, 130, 1000, 10_000, 1_000_000}
		if w == 1000 {
			for rate := uint32(66); rate < 127; rate++ {
				rates = append(rates, rate)
			}
		}
		for _, rate := range rates {
			rng := rand.New(rand.NewPCG(seed, uint64(w)<<32|uint64(rate)))
			all = append(all, patternsOf(w, rate, most, rng)...)
		}
	}
	return all
}

func patternsOf(windowMs, rate uint32, most int, rng *rand.Rand) []pattern {
	w := int64(windowMs) * nsPerMs
	grain := max(1, rate/uint32(most)) // tokens of a steady demand
	even := w / int64(rate/grain)
	start := rng.Int64N(1 << rng.IntN(50)) // slots and quanta begin at round times
	p := func(name string, steady bool, next func() demandOf) pattern {
		return pattern{name: name, window: windowMs, rate: rate, start: start, next: next, demands: int(rate / grain), steady: steady}
	}
	one := func(after int64) demandOf { return demandOf{after, 1} }
	some := func(after int64) demandOf { return demandOf{after, grain} }
	return []pattern{
		p("steady singles at the limit", true, func() demandOf { return some(even) }),
		p("steady singles at twice the limit", true, func() demandOf { return some(even / 2) }),
		p("steady singles, uneven", false, func() demandOf { return one(rng.Int64N(2*even + 1)) }),
		p("one token per instant", false, func() demandOf { return one(1) }),
		p("time standing still", false, func() demandOf { return one(0) }),
		p("whole limit each window", true, whole(w, rate)),
		p("burst of the limit at one instant", true, burst(w, rate, grain, 0)),
		p("burst of the limit in a tenth", true, burst(w, rate, grain, w/10)),
		p("burst of the limit in three quarters", true, burst(w, rate, grain, w*3/4)),
		p("burst at the edges", false, edges(w, rng)),
		p("anything", false, anything(w, rate, rng)),
		p("lulls and rushes", false, lulls(w, rate, rng)),
	}
}

// whole asks for the limit in one demand, exactly a window apart.
func whole(w int64, rate uint32) func() demandOf {
	return func() demandOf { return demandOf{w, rate} }
}

// burst asks for the limit in small demands spread evenly over a part of each window.
func burst(w int64, rate, grain uint32, length int64) func() demandOf {
	k, n := uint32(0), rate/grain
	gap := length / int64(n)
	return func() demandOf {
		after := gap
		if k == 0 {
			after = w - gap*int64(n-1)
		}
		k = (k + 1) % n
		return demandOf{after, grain}
	}
}

// edges asks within a few nanoseconds of what is exactly a window old.
func edges(w int64, rng *rand.Rand) func() demandOf {
	return func() demandOf {
		switch rng.IntN(4) {
		case 0:
			return demandOf{max(0, w-2+rng.Int64N(4)), 1}
		case 1:
			return demandOf{max(0, w/2-1+rng.Int64N(3)), 1}
		default:
			return demandOf{rng.Int64N(3), 1 + rng.Uint32N(3)}
		}
	}
}

// anything asks for any amount after any time of the order of the limit.
func anything(w int64, rate uint32, rng *rand.Rand) func() demandOf {
	return func() demandOf {
		tokens := rng.Uint32N(min(rate, 1000)) + 1
		return demandOf{rng.Int64N(w/int64(rate)*int64(tokens)*2 + 2), tokens}
	}
}

// lulls changes the pace at random, from nanoseconds to windows.
func lulls(w int64, rate uint32, rng *rand.Rand) func() demandOf {
	pace, left := int64(1), 0
	return func() demandOf {
		if left == 0 {
			left = 1 + rng.IntN(400)
			pace = 1
			for range rng.IntN(14) {
				pace = min(pace*(1+rng.Int64N(40)), 2*w)
			}
		}
		left--
		return demandOf{rng.Int64N(pace + 1), 1 + rng.Uint32N(min(rate, 3))}
	}
}
