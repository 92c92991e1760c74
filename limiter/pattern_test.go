package limiter

import "math/rand/v2"

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
	next   func() demandOf
	n      int
	// steady patterns are those of which the engine promises a share of what an exact log grants.
	steady bool
}

const day = 24 * 3600 * 1000 // ms

// patterns returns streams that are made to break windows, each about n demands long.
func patterns(n int, seed uint64) (all []pattern) {
	windows := []uint32{1, 7, 1000, 60_000, day, 49 * day}
	rates := []uint32{1, 2, 63, 64, 65, 100, 127, 128, 129, 130, 1000, 10_000, 1_000_000}
	for _, w := range windows {
		for _, rate := range rates {
			rng := rand.New(rand.NewPCG(seed, uint64(w)<<32|uint64(rate)))
			all = append(all, patternsOf(w, rate, n, rng)...)
		}
	}
	return all
}

func patternsOf(windowMs, rate uint32, n int, rng *rand.Rand) []pattern {
	w := int64(windowMs) * nsPerMs
	even := w / int64(rate)
	p := func(name string, steady bool, next func() demandOf) pattern {
		return pattern{name, windowMs, rate, next, n, steady}
	}
	one := func(after int64) demandOf { return demandOf{max(0, after), 1} }
	return []pattern{
		p("steady singles at the limit", true, func() demandOf { return one(even) }),
		p("steady singles at twice the limit", true, func() demandOf { return one(even / 2) }),
		p("steady singles, uneven", false, func() demandOf { return one(rng.Int64N(2*even + 1)) }),
		p("one token per instant", false, func() demandOf { return one(1) }),
		p("time standing still", false, func() demandOf { return one(0) }),
		p("whole limit each window", true, whole(w, rate)),
		p("burst of the limit at one instant", true, burst(w, rate, 0)),
		p("burst of the limit in a tenth", true, burst(w, rate, w/10)),
		p("burst of the limit in three quarters", true, burst(w, rate, w*3/4)),
		p("burst at the edges", false, edges(w, rng)),
		p("anything", false, anything(w, rate, rng)),
		p("lulls and rushes", false, lulls(w, rate, rng)),
	}
}

// whole asks for the limit in one demand, exactly a window apart.
func whole(w int64, rate uint32) func() demandOf {
	return func() demandOf { return demandOf{w, rate} }
}

// burst asks for the limit in single tokens spread evenly over a part of each window.
func burst(w int64, rate uint32, length int64) func() demandOf {
	k := uint32(0)
	gap := length / int64(rate)
	return func() demandOf {
		after := gap
		if k == 0 {
			after = w - gap*int64(rate-1)
		}
		k = (k + 1) % rate
		return demandOf{after, 1}
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
