package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// words are places of a distribution: round ones, the ends, and some at random.
func words() []uint64 {
	w := []uint64{0, 1, 2, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}
	for i := range 64 {
		w = append(w, 1<<i, 1<<i+1, -(1 << i), -(1<<i)-1)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		w = append(w, random.Uint64(), random.Uint64()>>random.Uint64N(64), -(random.Uint64() >> random.Uint64N(64)))
	}
	return w
}

func TestLog2(t *testing.T) {
	worst := 0.0
	for _, w := range words() {
		if w == 0 {
			continue
		}
		worst = max(worst, math.Abs(float64(log2(w))/(1<<logBits)-math.Log2(float64(w))))
	}
	if worst > 1e-14 { // what float64 tells apart near 64
		t.Errorf("off by %g", worst)
	}
	for n := range 64 {
		if got := log2(1 << n); got != uint64(n)<<logBits {
			t.Errorf("the logarithm of 2^%d is %d", n, got)
		}
	}
}

func TestExp2(t *testing.T) {
	worst := 0.0
	for _, w := range words() {
		want := math.Exp2(float64(w) / (1 << 32) / (1 << 32))
		worst = max(worst, math.Abs(float64(exp2(w))/(1<<63)-want))
	}
	if worst > 5e-15 {
		t.Errorf("off by %g", worst)
	}
}

func TestNormal(t *testing.T) {
	worst := 0.0
	for _, w := range words() {
		z, below := normal(w)
		got := float64(z) / (1 << logBits)
		tail := float64(-w) / (1 << 32) / (1 << 32)
		if below {
			tail = (float64(w) + 1) / (1 << 32) / (1 << 32)
		}
		if w>>63 == 0 != below {
			t.Fatalf("%#x is below the middle: %v", w, below)
		}
		worst = max(worst, math.Abs(math.Erfc(got/math.Sqrt2)/2/tail-1))
	}
	// Relative to the tail beyond, which is the stricter of the two ways to look at it.
	if worst > 2e-5 {
		t.Errorf("the tail is off by %g of itself", worst)
	}
}

// TestQuantiles compares distributions with their closed forms, far into the tails.
func TestQuantiles(t *testing.T) {
	const ms = float64(time.Millisecond)
	sigma := math.Log(9) / 2.3263478740408408
	for _, q := range []float64{0.0001, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.999999, 0.999999999} {
		word := uint64(q * (1 << 32) * (1 << 32))
		z := math.Sqrt2 * math.Erfinv(2*q-1)
		for _, c := range []struct {
			d    Dist
			want float64
		}{
			{Uniform(time.Millisecond, 3*time.Millisecond), ms + 2*ms*q},
			{Exponential(5 * time.Millisecond), -5 * ms * math.Log1p(-q)},
			{Lognormal(time.Millisecond, 9*time.Millisecond), ms * math.Exp(sigma*z)},
			{Constant(time.Millisecond), ms},
		} {
			got := float64(c.d.At(word))
			if math.Abs(got-c.want) > 1+c.want*1e-5 {
				t.Errorf("%v at %v: %v, want %v", c.d, q, got, c.want)
			}
		}
	}
}

// TestDistIsMonotone: more of the distribution below is never a shorter duration, and all are
// within what is allowed.
func TestDistIsMonotone(t *testing.T) {
	dists := []Dist{
		Constant(time.Second), Uniform(0, time.Hour), Uniform(time.Second, time.Second), Exponential(time.Nanosecond),
		Exponential(MaxDuration), Lognormal(1, MaxDuration), Lognormal(time.Millisecond, time.Millisecond),
		Lognormal(MaxDuration, MaxDuration), Lognormal(200*time.Microsecond, 5*time.Millisecond),
		Empirical([]time.Duration{5, 1, 3}, []uint64{1, 2, 0}),
	}
	ws := words()
	random := rand.New(rand.NewPCG(3, 4))
	for _, d := range dists {
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		for range 20_000 {
			a, b := ws[random.IntN(len(ws))], ws[random.IntN(len(ws))]
			if a > b {
				a, b = b, a
			}
			if x, y := d.At(a), d.At(b); x > y || x < 0 || y > MaxDuration {
				t.Fatalf("%v is %v at %#x and %v at %#x", d, x, a, y, b)
			}
		}
	}
}

// TestDistPinned holds every bit of some draws: they must be the same on all machines.
func TestDistPinned(t *testing.T) {
	for _, c := range []struct {
		dist string
		word uint64
		want time.Duration
	}{
		{"uniform 1ms 3ms", 0x0, 1000000},
		{"uniform 1ms 3ms", 0x1, 1000000},
		{"uniform 1ms 3ms", 0x123456789abcdef0, 1142222},
		{"uniform 1ms 3ms", 0x7fffffffffffffff, 2000000},
		{"uniform 1ms 3ms", 0x8000000000000000, 2000000},
		{"uniform 1ms 3ms", 0xfedcba9876543210, 2991112},
		{"uniform 1ms 3ms", 0xffffffffffffffff, 3000000},
		{"exponential 5ms", 0x0, 0},
		{"exponential 5ms", 0x1, 0},
		{"exponential 5ms", 0x123456789abcdef0, 368830},
		{"exponential 5ms", 0x7fffffffffffffff, 3465735},
		{"exponential 5ms", 0x8000000000000000, 3465735},
		{"exponential 5ms", 0xfedcba9876543210, 27080502},
		{"exponential 5ms", 0xffffffffffffffff, 221807097},
		{"lognormal 1ms 9ms", 0x0, 188},
		{"lognormal 1ms 9ms", 0x1, 202},
		{"lognormal 1ms 9ms", 0x123456789abcdef0, 250046},
		{"lognormal 1ms 9ms", 0x7fffffffffffffff, 1000000},
		{"lognormal 1ms 9ms", 0x8000000000000000, 1000000},
		{"lognormal 1ms 9ms", 0xfedcba9876543210, 11835237},
		{"lognormal 1ms 9ms", 0xffffffffffffffff, 5303719366},
		{"lognormal 200µs 24h0m0s", 0x0, 0},
		{"lognormal 200µs 24h0m0s", 0x1, 0},
		{"lognormal 200µs 24h0m0s", 0x123456789abcdef0, 0},
		{"lognormal 200µs 24h0m0s", 0x7fffffffffffffff, 200000},
		{"lognormal 200µs 24h0m0s", 0x8000000000000000, 200000},
		{"lognormal 200µs 24h0m0s", 0xfedcba9876543210, 86400000000000},
		{"lognormal 200µs 24h0m0s", 0xffffffffffffffff, 86400000000000},
	} {
		d, err := ParseDist(c.dist)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.At(c.word); got != c.want {
			t.Errorf("%v at %#x is %d, not %d", d, c.word, got, c.want)
		}
	}
}

func TestParseDist(t *testing.T) {
	for _, text := range []string{"0s", "5ms", "uniform 1ms 3ms", "exponential 2ms", "lognormal 1ms 9ms"} {
		d, err := ParseDist(text)
		if err != nil || d.String() != text {
			t.Errorf("%q is read as %v, %v", text, d, err)
		}
		if again, err := ParseDist(d.String()); err != nil || again != d {
			t.Errorf("%v is read back as %v, %v", d, again, err)
		}
	}
	if d, err := ParseDist("lognormal 1ms 9ms"); err != nil || d != Lognormal(time.Millisecond, 9*time.Millisecond) {
		t.Errorf("lognormal is %+v, %v", d, err)
	}
	for _, text := range []string{
		"", " ", "5", "-5ms", "25h", "uniform 1ms", "uniform 3ms 1ms", "uniform 1ms 2ms 3ms", "exponential 0s", "exponential",
		"lognormal 9ms 1ms", "lognormal 0s 1ms", "normal 1ms 2ms", "1ms 2ms", "uniform a b",
	} {
		if d, err := ParseDist(text); err == nil {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}

// TestEmpirical counts what is drawn from values that were seen.
func TestEmpirical(t *testing.T) {
	d := Empirical([]time.Duration{30, 10, 20, 10}, []uint64{1, 2, 0, 1})
	random := rand.New(rand.NewPCG(5, 6))
	seen := map[time.Duration]int{}
	for range 40_000 {
		seen[d.At(random.Uint64())]++
	}
	if len(seen) != 2 || seen[10] < 29_500 || seen[10] > 30_500 {
		t.Errorf("3 of 4 are 10 and the other is 30, but %v were drawn", seen)
	}
	if d.At(0) != 10 || d.At(math.MaxUint64) != 30 || d.At(3<<62-1) != 10 || d.At(3<<62) != 30 {
		t.Error("the step from 10 to 30 is not at three quarters")
	}
	for _, bad := range []Dist{
		Empirical(nil, nil), Empirical([]time.Duration{1}, []uint64{1, 2}), Empirical([]time.Duration{-1}, nil),
		Empirical([]time.Duration{1}, []uint64{0}), Empirical([]time.Duration{1, 2}, []uint64{1 << 63, 1 << 63}), Empirical([]time.Duration{MaxDuration + 1}, nil),
	} {
		if bad.Validate() == nil {
			t.Errorf("%v has nothing wrong", bad)
		}
	}
}
