package reality

import (
	"math"
	"testing"
)

func TestIntervals(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.003 {
			t.Errorf("%s is %v, not %v", what, got, want)
		}
	}
	near("the normal quantile of 97.5 %", normal(0.975), 1.95996)
	near("Student's, with 10 degrees of freedom", student(1.95996, 10), 2.2281)
	near("Student's, with 39", student(1.95996, 39), 2.0227)
	low, high := wilson(10, 100, 1.95996)
	near("the lower end of 10 of 100", low, 0.0552)
	near("the upper end", high, 0.1744)
	low, high = wilson(0, 50, 1.95996)
	near("the lower end of 0 of 50", low, 0)
	near("the upper end", high, 0.0714)
	if low, high = wilson(0, 0, 2); low != 0 || high != 1 {
		t.Errorf("nothing of nothing is from %v to %v", low, high)
	}
}

// TestCompareShare holds what makes a share agree: that chance could have made it, be it for each
// request or, where requests fare alike, for a whole run.
func TestCompareShare(t *testing.T) {
	run := func(granted int) *outcome {
		return &outcome{Submitted: 3000, Granted: granted, Rejected: 3000 - granted}
	}
	share := func(o *outcome) (int, int) { return o.Granted, o.decided() }
	alike := make([]*outcome, seeds)
	apart := make([]*outcome, seeds)
	for i := range alike {
		alike[i] = run(1500)
		apart[i] = run(1500 + 100*(i%2*2-1))
	}
	for _, c := range []struct {
		what      string
		simulated []*outcome
		granted   int
		agrees    bool
	}{
		{"the same", alike, 1500, true},
		{"chance", alike, 1550, true},
		{"more than chance", alike, 1650, false},
		{"less than chance", alike, 1350, false},
		{"as far as seeds are apart", apart, 1800, true},
		{"further than seeds are apart", apart, 2000, false},
	} {
		m := compareShare("a scenario", "granted", c.simulated, run(c.granted), share)
		if m.agrees != c.agrees {
			t.Errorf("%s: %d of 3000 agrees: %v; %+v", c.what, c.granted, m.agrees, m)
		}
	}
	disturbed := run(1650)
	disturbed.Disturbed = 80
	if m := compareShare("a scenario", "granted", alike, disturbed, share); !m.agrees {
		t.Errorf("1650 of 3000 of which 80 were disturbed: %+v", m)
	}
	// What never happens in the simulation may happen now and then, and not often.
	for granted, agrees := range map[int]bool{0: true, 1: true, 2: true, 20: false} {
		never := make([]*outcome, seeds)
		for i := range never {
			never[i] = run(0)
		}
		if m := compareShare("a scenario", "granted", never, run(granted), share); m.agrees != agrees {
			t.Errorf("%d of 3000 where there are none: agrees %v; %+v", granted, m.agrees, m)
		}
	}
}
