package sim

// The quantiles of the normal distribution go by the share of the nearer tail: half the
// distribution, a quarter, and so on, are octaves, so that the farthest tail is as exact as the
// middle. normalTable, which the tests compute anew, has them at eighths of an octave with
// logBits bits behind the point, from 7/8 of an octave on; in between a cubic goes through the
// four entries around.

const normalSteps = 3 // bits: eighths

// normal returns the absolute value of the standard normal quantile at word/2^64, with logBits
// bits behind the point, and whether it is negative. The share that
// lies beyond it is off by less than 2 in 100,000 of itself, however small it is.
func normal(word uint64) (z uint64, below bool) {
	tail := -word
	if below = word>>63 == 0; below {
		tail = word + 1
	}
	if tail == 0 || tail > 1<<63 {
		tail = 1 << 63
	}
	octaves := 63<<logBits - log2(tail) // behind the first
	const shift = logBits - normalSteps
	k, t := octaves>>shift, octaves&(1<<shift-1)<<(64-shift)
	return uint64(max(0, cubic((*[4]int64)(normalTable[k:k+4]), t))), below
}

// cubic returns what the polynomial of third degree through four values, a step apart, is at
// t/2^64 of the step from the second to the third: Newton's form with differences.
func cubic(y *[4]int64, t uint64) int64 {
	d1 := y[1] - y[0]
	d2 := y[2] - 2*y[1] + y[0]
	d3 := y[3] - 3*y[2] + 3*y[1] - y[0]
	// y0 + (1+t) (d1 + t/2 (d2 + (t-1)/3 d3))
	inner := d2 - (d3-scaled(d3, t))/3
	inner = d1 + scaled(inner, t)/2
	return y[0] + inner + scaled(inner, t)
}

// scaled returns the whole part of x * t / 2^64, towards 0.
func scaled(x int64, t uint64) int64 {
	if x < 0 {
		return -int64(share(uint64(-x), t))
	}
	return int64(share(uint64(x), t))
}

// normal99 is the 99th percentile of the standard normal distribution.
const normal99 = 167631030698631641
