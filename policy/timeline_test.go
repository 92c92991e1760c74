package policy_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/policy"
)

func TestDefaultTimeline(t *testing.T) {
	tl, err := policy.Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	if tl.Rounds() != 2 || !tl.CompletionDelivery() || tl.DeliveryDelay() != 0 || tl.Policy() != policy.Default() {
		t.Errorf("Rounds() = %d, CompletionDelivery() = %v, Policy() = %v", tl.Rounds(), tl.CompletionDelivery(), tl.Policy())
	}
	for k, want := range []time.Duration{0, 20 * ms, 40 * ms, 60 * ms} {
		if got := tl.Start(k); got != want {
			t.Errorf("Start(%d) = %v, want %v", k, got, want)
		}
	}
	for k, want := range []time.Duration{20 * ms, 20 * ms, 40 * ms} {
		if got := tl.PreferenceEnd(k); got != want {
			t.Errorf("PreferenceEnd(%d) = %v, want %v", k, got, want)
		}
	}
	for _, c := range []struct {
		at   time.Duration
		want int
	}{
		{math.MinInt64, 0},
		{-1, 0},
		{0, 0},
		{20*ms - 1, 0},
		{20 * ms, 1},
		{40*ms - 1, 1},
		{40 * ms, 2},
		{60*ms - 1, 2},
		{60 * ms, 3},
		{math.MaxInt64, 3},
	} {
		if got := tl.RoundAt(c.at); got != c.want {
			t.Errorf("RoundAt(%v) = %d, want %d", c.at, got, c.want)
		}
	}
}

func TestEmptyFinalInterval(t *testing.T) {
	p := policy.Default()
	p.FinalReceive, p.Replays = 0, 0
	tl, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if tl.Rounds() != 1 || tl.Horizon() != 20*time.Millisecond || tl.Start(1) != tl.Horizon() || tl.PreferenceEnd(1) != tl.Horizon() {
		t.Errorf("%d rounds, final interval from %v, preference to %v, horizon %v", tl.Rounds(), tl.Start(1), tl.PreferenceEnd(1), tl.Horizon())
	}
	if got := tl.RoundAt(tl.Horizon() - 1); got != 0 {
		t.Errorf("just before the horizon is round %d, want 0", got)
	}
	if got := tl.RoundAt(tl.Horizon()); got != 2 {
		t.Errorf("the horizon is round %d, want 2", got)
	}
}

func TestHorizonMsRoundsUp(t *testing.T) {
	const longest = math.MaxUint32 * time.Millisecond
	for _, c := range []struct {
		unit time.Duration
		want uint32
	}{
		{1, 1},
		{time.Millisecond - 1, 1},
		{time.Millisecond, 1},
		{time.Millisecond + 1, 2},
		{longest - time.Millisecond, math.MaxUint32 - 1},
		{longest - time.Millisecond + 1, math.MaxUint32},
		{longest, math.MaxUint32},
	} {
		p := policy.Policy{Unit: c.unit, Gap: policy.Fixed(1), Preference: policy.Fixed(0)}
		tl, err := p.Compile()
		if err != nil {
			t.Errorf("a horizon of %v: %v", c.unit, err)
			continue
		}
		if tl.Horizon() != c.unit || tl.HorizonMs() != c.want {
			t.Errorf("a horizon of %v: %v, %d ms; want %d ms", c.unit, tl.Horizon(), tl.HorizonMs(), c.want)
		}
	}
}

func TestCompileNamesTheField(t *testing.T) {
	const tooLong = math.MaxUint32*time.Millisecond + 1
	for _, c := range []struct {
		name   string
		change func(*policy.Policy)
		field  string
	}{
		{"no unit", func(p *policy.Policy) { p.Unit = 0 }, "unit"},
		{"negative unit", func(p *policy.Policy) { p.Unit = -1 }, "unit"},
		{"negative replays", func(p *policy.Policy) { p.Replays = -1 }, "replays"},
		{"too many replays", func(p *policy.Policy) { p.Replays = 65536 }, "replays"},
		{"no gap", func(p *policy.Policy) { p.Gap = policy.Schedule{} }, "gap"},
		{"gap without a step", func(p *policy.Policy) { p.Gap = policy.Linear(1, 0, 2) }, "gap"},
		{"gap of 0", func(p *policy.Policy) { p.Gap, p.Preference = policy.Fixed(0), policy.Fixed(0) }, "gap"},
		{"gap of 0 in the last round", func(p *policy.Policy) { p.Gap, p.Preference = policy.List(1, 0), policy.Fixed(0) }, "gap"},
		{"no preference", func(p *policy.Policy) { p.Preference = policy.Schedule{} }, "preference"},
		{"preference with factor 1", func(p *policy.Policy) { p.Preference = policy.Exponential(1, 1, 1) }, "preference"},
		{"preference over the gap", func(p *policy.Policy) { p.Preference = policy.Fixed(2) }, "preference"},
		{"preference over the gap in the last round", func(p *policy.Policy) { p.Preference = policy.List(0, 2) }, "preference"},
		{"final preference", func(p *policy.Policy) { p.FinalPreference = 2 }, "final-preference"},
		{"horizon", func(p *policy.Policy) {
			*p = policy.Policy{Unit: tooLong, Gap: policy.Fixed(1), Preference: policy.Fixed(0)}
		}, "horizon"},
		{"horizon by the final interval", func(p *policy.Policy) { p.FinalReceive = math.MaxUint32 }, "horizon"},
		{"overflow of 64 bits", func(p *policy.Policy) { p.Unit = math.MaxInt64 }, "horizon"},
		{"overflow of 128 bits", func(p *policy.Policy) {
			*p = policy.Policy{Unit: math.MaxInt64, Replays: 65535, Gap: policy.Fixed(math.MaxUint32), Preference: policy.Fixed(0), FinalReceive: math.MaxUint32}
		}, "horizon"},
		{"overflow of 64 bits to 0", func(p *policy.Policy) {
			*p = policy.Policy{Unit: 1 << 32, Gap: policy.Fixed(math.MaxUint32), Preference: policy.Fixed(0), FinalReceive: 1}
		}, "horizon"},
		{"delay without a delivery", func(p *policy.Policy) { p.CompletionDelivery, p.DeliveryDelay = false, 1 }, "delivery-delay"},
		{"delay to the horizon", func(p *policy.Policy) { p.DeliveryDelay = 3 }, "delivery-delay"},
		{"the zero policy", func(p *policy.Policy) { *p = policy.Policy{} }, "unit"},
	} {
		p := policy.Default()
		c.change(&p)
		tl, err := p.Compile()
		var field *policy.FieldError
		if tl != nil || !errors.As(err, &field) || field.Field != c.field || field.Problem == "" {
			t.Errorf("%s: %v, error %v; want one about %q", c.name, tl, err, c.field)
		}
	}
	// A list may have values for rounds that the policy does not have.
	p := policy.Default()
	p.Replays, p.Gap, p.Preference = 0, policy.List(1, 0), policy.List(1, 9)
	if _, err := p.Compile(); err != nil {
		t.Errorf("values of rounds that do not exist: %v", err)
	}
}

func TestIsZero(t *testing.T) {
	if !(policy.Policy{}).IsZero() || policy.Default().IsZero() || (policy.Policy{CompletionDelivery: true}).IsZero() {
		t.Error("IsZero is wrong")
	}
}

// TestCompileAgainstBigIntegers recomputes every rule and instant naively, in
// integers that cannot overflow.
func TestCompileAgainstBigIntegers(t *testing.T) {
	compiled, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		gap, naiveGap := drawSchedule(t, "gap")
		preference, naivePreference := drawSchedule(t, "preference")
		small := rapid.Uint32Range(0, 5)
		p := policy.Policy{
			Unit:            time.Duration(rapid.OneOf(rapid.Int64Range(1, 1e8), rapid.Int64Range(-1, math.MaxInt64)).Draw(t, "unit")),
			Replays:         rapid.OneOf(rapid.IntRange(0, 4), rapid.IntRange(-1, 300)).Draw(t, "replays"),
			Gap:             gap,
			Preference:      preference,
			FinalReceive:    rapid.OneOf(small, rapid.Uint32()).Draw(t, "final"),
			FinalPreference: rapid.OneOf(small, rapid.Uint32()).Draw(t, "final preference"),

			CompletionDelivery: rapid.IntRange(0, 3).Draw(t, "delivery") > 0,
			DeliveryDelay:      rapid.OneOf(rapid.Just(uint32(0)), small, rapid.Uint32()).Draw(t, "delay"),
		}
		valid := p.Unit > 0 && p.Replays >= 0 && p.Replays <= 65535 && p.FinalPreference <= p.FinalReceive
		unit := big.NewInt(int64(p.Unit))
		at := new(big.Int)
		var starts, ends []*big.Int
		add := func(length, preference *big.Int) {
			starts = append(starts, new(big.Int).Set(at))
			end := new(big.Int).Mul(unit, preference)
			ends = append(ends, end.Add(end, at))
			at.Add(at, new(big.Int).Mul(unit, length))
		}
		for k := 0; k <= p.Replays; k++ {
			b, w := naiveGap(k), naivePreference(k)
			valid = valid && b.Sign() > 0 && w.Cmp(b) <= 0
			add(b, w)
		}
		add(big.NewInt(int64(p.FinalReceive)), big.NewInt(int64(p.FinalPreference)))
		starts = append(starts, at)
		ms := new(big.Int).Add(at, big.NewInt(999_999))
		ms.Div(ms, big.NewInt(1_000_000))
		delay := new(big.Int).Mul(unit, big.NewInt(int64(p.DeliveryDelay)))
		valid = valid && (p.DeliveryDelay == 0 || p.CompletionDelivery && delay.Cmp(at) < 0)
		valid = valid && ms.Sign() > 0 && ms.Cmp(big.NewInt(math.MaxUint32)) <= 0

		tl, err := p.Compile()
		if valid != (err == nil) {
			t.Fatalf("%v: error %v, want it valid: %v", p, err, valid)
		}
		if err != nil {
			refused++
			return
		}
		compiled++
		if tl.Rounds() != p.Replays+1 || big.NewInt(int64(tl.Horizon())).Cmp(at) != 0 || uint64(tl.HorizonMs()) != ms.Uint64() {
			t.Errorf("%v: %d rounds, horizon %v, %d ms; want %v ns, %v ms", p, tl.Rounds(), tl.Horizon(), tl.HorizonMs(), at, ms)
		}
		if got := tl.DeliveryDelay(); big.NewInt(int64(got)).Cmp(delay) != 0 || tl.CompletionDelivery() != p.CompletionDelivery {
			t.Errorf("%v: DeliveryDelay() = %v, want %v", p, got, delay)
		}
		for k, want := range starts {
			if got := tl.Start(k); big.NewInt(int64(got)).Cmp(want) != 0 {
				t.Errorf("%v: Start(%d) = %d, want %v", p, k, got, want)
			}
		}
		for k, want := range ends {
			if got := tl.PreferenceEnd(k); big.NewInt(int64(got)).Cmp(want) != 0 {
				t.Errorf("%v: PreferenceEnd(%d) = %d, want %v", p, k, got, want)
			}
		}
		for k := range tl.Rounds() + 1 {
			start, end := tl.Start(k), tl.Start(k+1)
			if start == end {
				continue // an empty final interval
			}
			if tl.RoundAt(start) != k || tl.RoundAt(end-1) != k || tl.RoundAt(end) == k {
				t.Errorf("%v: interval %d, [%v, %v), is found as %d, %d and then %d", p, k, start, end, tl.RoundAt(start), tl.RoundAt(end-1), tl.RoundAt(end))
			}
		}
		if got := tl.RoundAt(tl.Horizon()); got != p.Replays+2 {
			t.Errorf("%v: the horizon is in interval %d", p, got)
		}
	})
	if compiled == 0 || refused == 0 {
		t.Errorf("%d policies compiled and %d were refused: this test compares nothing", compiled, refused)
	}
}

func TestLongestPolicy(t *testing.T) {
	p := policy.Policy{Unit: time.Millisecond, Replays: 65535, Gap: policy.Fixed(65535), Preference: policy.Fixed(0)}
	tl, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if tl.Rounds() != 65536 || tl.HorizonMs() != 65536*65535 || tl.RoundAt(tl.Horizon()-1) != 65536-1 {
		t.Errorf("%d rounds, horizon %d ms, ends in round %d", tl.Rounds(), tl.HorizonMs(), tl.RoundAt(tl.Horizon()-1))
	}
}

func TestTimelineAllocatesNothing(t *testing.T) {
	tl, err := policy.Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { tl.RoundAt(tl.PreferenceEnd(1)) }); n != 0 {
		t.Errorf("RoundAt allocates %v times", n)
	}
}

func BenchmarkRoundAt(b *testing.B) {
	tl, err := policy.Default().Compile()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		tl.RoundAt(25 * time.Millisecond)
	}
}
