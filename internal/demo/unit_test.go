package demo

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	d := make([]time.Duration, 0, 100)
	for i := range 100 {
		d = append(d, time.Duration(100-i))
	}
	for p, want := range map[int]time.Duration{1: 1, 50: 50, 99: 99, 100: 100} {
		if got := percentile(d, p); got != want {
			t.Errorf("p%d is %d", p, got)
		}
	}
	if percentile(nil, 50) != 0 || percentile([]time.Duration{7}, 1) != 7 || percentile([]time.Duration{7}, 99) != 7 || percentile([]time.Duration{1, 2}, 50) != 1 {
		t.Error("the percentiles of few values are wrong")
	}
}

func TestExpectedFitsTheBar(t *testing.T) {
	if e := (Pace{}).Expected(); e < 15*time.Second || e > 25*time.Second {
		t.Errorf("a demo takes about %v", e)
	}
	if l := (Pace{}).orDefault().Limit; l >= time.Minute {
		t.Errorf("a demo may take %v", l)
	}
}
