package policy_test

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/policy"
)

func TestScheduleValues(t *testing.T) {
	for _, c := range []struct {
		text string
		want []uint64
	}{
		{"fixed:1", []uint64{1, 1, 1}},
		{"fixed:0", []uint64{0, 0}},
		{"fixed:4294967295", []uint64{math.MaxUint32, math.MaxUint32}},
		{"linear:1:1:4", []uint64{1, 2, 3, 4, 4, 4}},
		{"linear:1:2:4", []uint64{1, 3, 4, 4}},
		{"linear:0:5:3", []uint64{0, 3, 3}},
		{"linear:4:1:4", []uint64{4, 4}},
		{"linear:4294967294:4294967295:4294967295", []uint64{math.MaxUint32 - 1, math.MaxUint32, math.MaxUint32}},
		{"exponential:1:2:8", []uint64{1, 2, 4, 8, 8}},
		{"exponential:1:3:8", []uint64{1, 3, 8, 8}},
		{"exponential:8:2:8", []uint64{8, 8}},
		{"exponential:0:2:8", []uint64{0, 0, 0}},
		{"exponential:4294967294:4294967295:4294967295", []uint64{math.MaxUint32 - 1, math.MaxUint32}},
		{"list:1,0", []uint64{1, 0, 0, 0}},
		{"list:7", []uint64{7, 7}},
		{"list:4294967295,256,65536", []uint64{math.MaxUint32, 256, 65536, 65536}},
	} {
		s, err := policy.ParseSchedule(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for k, want := range c.want {
			if got := s.At(k); got != want {
				t.Errorf("%s: At(%d) = %d, want %d", c.text, k, got, want)
			}
		}
		if s.String() != c.text {
			t.Errorf("%s is written %s", c.text, s)
		}
	}
}

func TestScheduleErrors(t *testing.T) {
	for _, c := range []struct {
		s   policy.Schedule
		say string
	}{
		{policy.Schedule{}, "no schedule is set"},
		{policy.Linear(1, 0, 4), "the step is 0"},
		{policy.Linear(5, 1, 4), "above the max"},
		{policy.Exponential(1, 0, 8), "factor is below 2"},
		{policy.Exponential(1, 1, 8), "factor is below 2"},
		{policy.Exponential(9, 2, 8), "above the max"},
		{policy.List(), "the list is empty"},
		{policy.List(make([]uint32, 65537)...), "more than 65536 values"},
	} {
		if err := c.s.Validate(); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%.60v: error %v, want one that says %q", c.s, err, c.say)
		}
		if got := c.s.At(3); got != 0 {
			t.Errorf("%.60v: At(3) = %d, want 0", c.s, got)
		}
		if text := c.s.String(); len(text) < 60 {
			if s, err := policy.ParseSchedule(text); err == nil {
				t.Errorf("ParseSchedule(%q) = %v", text, s)
			}
		}
	}
	if err := policy.List(make([]uint32, 65536)...).Validate(); err != nil {
		t.Error(err)
	}
	if s, err := policy.ParseSchedule("list:1" + strings.Repeat(",1", 65536)); err == nil || !strings.Contains(err.Error(), "more than 65536 values") {
		t.Errorf("a text of 65537 values: %.60v, %v", s, err)
	}
	if s, err := policy.ParseSchedule("list:1" + strings.Repeat(",1", 65535)); err != nil || s.At(65535) != 1 {
		t.Errorf("a text of 65536 values: %.60v, %v", s, err)
	}
	for _, bad := range []string{
		"", ":", "fixed", "fixed:", "fixed:1:2", "fixed:-1", "fixed:+1", "fixed: 1", "fixed:1 ", "fixed:4294967296", "fixed:0x1", "fixed:1_0", "Fixed:1",
		"linear:1:1", "linear:1:1:4:5", "linear:1,1,4", "exponential:1:2", "exponential:1:2:8:", "list:", "list:1,", "list:,1", "list:1:0", "list:1,,0", "unset", "random:1",
	} {
		if s, err := policy.ParseSchedule(bad); err == nil || s != (policy.Schedule{}) {
			t.Errorf("ParseSchedule(%q) = %v, %v; want an error", bad, s, err)
		}
	}
}

func TestListSharesNothing(t *testing.T) {
	values := []uint32{3, 2, 1}
	s := policy.List(values...)
	values[0] = 9
	if got := s.At(0); got != 3 {
		t.Errorf("changing the caller's slice changed the schedule: At(0) = %d", got)
	}
	if s != policy.List(3, 2, 1) || s == policy.List(3, 2) {
		t.Error("equality of lists is not that of their values")
	}
}

// TestScheduleAgainstBigIntegers compares At with the definitions, computed in
// integers that cannot overflow.
func TestScheduleAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, naive := drawSchedule(t, "schedule")
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, k := range []int{0, 1, 2, 3, 31, 32, 33, 65535, rapid.IntRange(0, 65535).Draw(t, "k")} {
			if got, want := new(big.Int).SetUint64(s.At(k)), naive(k); got.Cmp(want) != 0 {
				t.Errorf("%v: At(%d) = %v, want %v", s, k, got, want)
			}
		}
		back, err := policy.ParseSchedule(s.String())
		if err != nil || back != s {
			t.Errorf("ParseSchedule(%q) = %v, %v", s, back, err)
		}
	})
}

func TestAtAllocatesNothing(t *testing.T) {
	for _, s := range []policy.Schedule{policy.Fixed(1), policy.Linear(1, 1, 4), policy.Exponential(1, 2, 8), policy.List(1, 0)} {
		if n := testing.AllocsPerRun(100, func() { s.At(3) }); n != 0 {
			t.Errorf("%v: At allocates %v times", s, n)
		}
	}
}

func parseScheduleTarget() *storm.Target {
	target := storm.New("FuzzParseSchedule", func(t testing.TB, text string) {
		s, err := policy.ParseSchedule(text)
		if err != nil {
			if s != (policy.Schedule{}) {
				t.Fatalf("ParseSchedule(%q) = %v beside an error", text, s)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("ParseSchedule(%q) gives what Validate refuses: %v", text, err)
		}
		if back, err := policy.ParseSchedule(s.String()); err != nil || back != s {
			t.Fatalf("%q is written %q, which reads %v, %v", text, s, back, err)
		}
	})
	for _, s := range []string{"fixed:1", "linear:1:1:4", "exponential:1:2:8", "list:1,0", "list:", "linear:1:0:4", "fixed:4294967296", ""} {
		target.Add(s)
	}
	return target
}

func FuzzParseSchedule(f *testing.F)      { parseScheduleTarget().Fuzz(f) }
func TestStormParseSchedule(t *testing.T) { parseScheduleTarget().Storm(t) }

// drawSchedule draws a valid schedule and its definition.
func drawSchedule(t *rapid.T, label string) (policy.Schedule, func(k int) *big.Int) {
	units := rapid.OneOf(rapid.Uint32Range(0, 20), rapid.Uint32())
	v := []uint32{units.Draw(t, label+" a"), units.Draw(t, label+" b")}
	slices.Sort(v)
	initial, peak := v[0], v[1]
	capped := func(v *big.Int) *big.Int {
		if limit := big.NewInt(int64(peak)); v.Cmp(limit) > 0 {
			return limit
		}
		return v
	}
	switch rapid.IntRange(0, 3).Draw(t, label+" kind") {
	case 0:
		return policy.Fixed(initial), func(int) *big.Int { return big.NewInt(int64(initial)) }
	case 1:
		step := max(1, units.Draw(t, label+" step"))
		return policy.Linear(initial, step, peak), func(k int) *big.Int {
			v := new(big.Int).Mul(big.NewInt(int64(step)), big.NewInt(int64(k)))
			return capped(v.Add(v, big.NewInt(int64(initial))))
		}
	case 2:
		factor := max(2, units.Draw(t, label+" factor"))
		return policy.Exponential(initial, factor, peak), func(k int) *big.Int {
			// 2^64 is over every max; a power beyond that needs no computing.
			v := new(big.Int).Exp(big.NewInt(int64(factor)), big.NewInt(int64(min(k, 64))), nil)
			return capped(v.Mul(v, big.NewInt(int64(initial))))
		}
	}
	list := rapid.SliceOfN(units, 1, 6).Draw(t, label+" list")
	return policy.List(list...), func(k int) *big.Int {
		if k >= len(list) {
			k = len(list) - 1
		}
		return big.NewInt(int64(list[k]))
	}
}
