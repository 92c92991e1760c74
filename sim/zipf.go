package sim

import "math/bits"

// zipf returns the sums of the weights of n things, of which the i-th (from 1) weighs
// i^(-hundredths/100), in units of 2^-40.
func zipf(n int, hundredths uint32) []uint64 {
	until := make([]uint64, n)
	sum := uint64(0)
	for i := range until {
		hi, lo := bits.Mul64(log2(uint64(i+1)), uint64(hundredths))
		l, _ := bits.Div64(hi, lo, 100)
		sum += max(1, negativePower(l)>>23)
		until[i] = sum
	}
	return until
}

// negativePower returns 2^-l with 63 bits behind the point, for l with logBits bits behind the
// point.
func negativePower(l uint64) uint64 {
	const one = 1 << logBits
	whole, part := l>>logBits, l&(one-1)
	if part == 0 {
		return 1 << 63 >> whole
	}
	return exp2((one-part)<<(64-logBits)) >> (whole + 1)
}
