package sim

import "math/bits"

// Binary logarithms and powers of whole numbers. They use no floating-point numbers, whose
// functions differ between machines, so that every draw is the same everywhere.

// powers holds 2^(i/2^8), 2^(i/2^16) and 2^(i/2^24) for i below 256, with 63 bits behind the
// point, and for each step of 1/256 from 1 to 2 the greatest power of the first kind up to it.
type powers struct {
	of    [3][256]uint64
	under [256]uint8
}

var power = makePowers()

func makePowers() (p powers) {
	root := uint64(1) << 63 // holds 2: it is shifted by one more
	var roots [24]uint64
	root = sqrt63(root, true)
	for k := range roots {
		roots[k] = root
		root = sqrt63(root, false)
	}
	for t := range p.of {
		for i := range p.of[t] {
			x := uint64(1) << 63
			for bit := range 8 {
				if i>>(7-bit)&1 == 1 {
					x = mul63(x, roots[8*t+bit])
				}
			}
			p.of[t][i] = x
		}
	}
	i := 0
	for step := range p.under {
		for i < 255 && p.of[0][i+1] <= 1<<63+uint64(step)<<55 {
			i++
		}
		p.under[step] = uint8(i)
	}
	return p
}

// sqrt63 returns the square root of a number from 1 to 2 with 63 bits behind the point, or of 2.
func sqrt63(x uint64, two bool) (root uint64) {
	hi, lo := x>>1, x<<63
	if two {
		hi, lo = x, 0
	}
	for bit := uint64(1) << 63; bit > 0; bit >>= 1 {
		if h, l := bits.Mul64(root|bit, root|bit); h < hi || h == hi && l <= lo {
			root |= bit
		}
	}
	return root
}

// mul63 multiplies two numbers from 1 to 2, with 63 bits behind the point, whose product is
// below 2.
func mul63(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<1 | lo>>63
}

// logBits is how many bits a logarithm has behind the point.
const logBits = 56

// The natural logarithm of 2 and the binary one of e less 1, with 64 bits behind the point.
const (
	ln2       = 0xb17217f7d1cf79ac
	log2eLess = 0x71547652b82fe177
)

// log2 returns the binary logarithm of x, which is at least 1, with logBits bits behind the
// point. It is off by less than 2^-50.
func log2(x uint64) uint64 {
	n := bits.Len64(x) - 1
	m := x << (63 - n)
	i := int(power.under[m>>55&0xff])
	for i < 255 && power.of[0][i+1] <= m {
		i++
	}
	base := power.of[0][i]
	y, _ := bits.Div64(m-base, 0, base) // m = base * (1 + y), with y below 0.003 and 64 bits behind the point
	const one = 1<<64 - 1
	p := uint64(one/4) - share(y, one/5)
	p = one/3 - share(y, p)
	p = one/2 - share(y, p)
	ln := share(y, one-share(y, p))
	part := min((ln+share(ln, log2eLess))>>(64-logBits), 1<<(logBits-8)) // not beyond the next base
	return uint64(n)<<logBits + uint64(i)<<(logBits-8) + part
}

// exp2 returns 2^(f/2^64) with 63 bits behind the point. It is off by less than 2^-48.
func exp2(f uint64) uint64 {
	x := power.of[0][f>>56]
	x = mul63(x, power.of[1][f>>48&0xff])
	x = mul63(x, power.of[2][f>>40&0xff])
	rest := share(f<<24, ln2) >> 24 // of the linear term: below 2^-24
	return x + share(x, rest)
}
