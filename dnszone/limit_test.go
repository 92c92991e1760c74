package dnszone

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestLimitAndSlip(t *testing.T) {
	const rate = 10
	l := newLimiter(rate, t0)
	now := t0.Add(time.Minute)
	for i := range rate * burstSeconds {
		if v := l.take(addr("192.0.2.1"), now); v != pass {
			t.Fatalf("answer %d of the burst: %d", i, v)
		}
	}
	// The neighbor shares the prefix; every second answer is a slip.
	for i, want := range []verdict{withhold, slipOne, withhold, slipOne} {
		if v := l.take(addr("192.0.2.200"), now); v != want {
			t.Fatalf("above the limit, answer %d: %d", i, v)
		}
	}
	if l.take(addr("192.0.3.1"), now) != pass || l.take(addr("2001:db8::1"), now) != pass {
		t.Fatal("another prefix is limited")
	}
	if l.take(addr("::ffff:192.0.2.9"), now) == pass {
		t.Fatal("the same prefix in its mapped form is not limited")
	}
	// A tenth of a second is one more answer, and no second one.
	now = now.Add(100 * time.Millisecond)
	if l.take(addr("192.0.2.1"), now) != pass || l.take(addr("192.0.2.1"), now) == pass {
		t.Fatal("the bucket does not fill at its rate")
	}
	// A clock that goes back fills nothing, and a long rest gives one burst.
	if l.take(addr("192.0.2.1"), t0) == pass {
		t.Fatal("a clock that went back filled the bucket")
	}
	now, passed := now.Add(time.Hour), 0
	for range 100 {
		if l.take(addr("192.0.2.1"), now) == pass {
			passed++
		}
	}
	if passed != rate*burstSeconds {
		t.Fatalf("%d answers after a rest", passed)
	}
}

func TestPrefixes(t *testing.T) {
	same := [][2]string{{"192.0.2.1", "192.0.2.254"}, {"2001:db8:0:ab00::1", "2001:db8:0:abff:ffff::"}, {"192.0.2.1", "::ffff:192.0.2.2"}}
	for _, p := range same {
		if prefixOf(addr(p[0])) != prefixOf(addr(p[1])) {
			t.Errorf("%s and %s are apart", p[0], p[1])
		}
	}
	other := [][2]string{{"192.0.2.1", "192.0.3.1"}, {"2001:db8:0:ab00::", "2001:db8:0:ac00::"}, {"::", "0.0.0.0"}, {"::", "::ffff:0:0"}}
	for _, p := range other {
		if prefixOf(addr(p[0])) == prefixOf(addr(p[1])) {
			t.Errorf("%s and %s are one", p[0], p[1])
		}
	}
}

func TestNotLimited(t *testing.T) {
	off, on := newLimiter(0, t0), newLimiter(1, t0)
	for range 100 {
		if off.take(addr("192.0.2.1"), t0) != pass {
			t.Fatal("a limit of none withholds")
		}
		for _, a := range []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"} {
			if on.take(addr(a), t0) != pass {
				t.Fatalf("%s is limited", a)
			}
		}
	}
}

// However many prefixes there are, in a second no prefix that stays in the table
// passes more than its burst and rate; and a flood of others costs no memory.
func TestLimitHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 50).Draw(t, "rate")
		l := newLimiter(rate, t0)
		now, start, passed := t0, t0, 0
		for range rapid.IntRange(1, 400).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
			if l.take(addr("192.0.2.7"), now) == pass {
				passed++
			}
		}
		if most := float64(rate)*(burstSeconds+now.Sub(start).Seconds()) + 1; float64(passed) > most {
			t.Fatalf("%d answers in %v at %d/s", passed, now.Sub(start), rate)
		}
	})
}

// In a full set the prefix at its limit is kept and one that is not goes, so
// that a crowd does not wash the limit away.
func TestCrowdDoesNotWashTheLimitAway(t *testing.T) {
	l := newLimiter(10, t0)
	victim := addr("192.0.2.1")
	for l.take(victim, t0) == pass {
	}
	for i := range 1 << 16 {
		l.take(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}), t0)
	}
	if l.take(victim, t0) == pass {
		t.Fatal("a crowd of other sources gave the limited one a new burst")
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := newLimiter(1e9, t0)
	a := addr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		l.take(a, t0)
	}
}
