package main

import (
	"errors"
	"strings"
	"testing"

	generator "github.com/weirhq/weir/internal/load"
	"github.com/weirhq/weir/policy"
)

// A generator that asked for less than it was told, or too late, gives no figure.
func TestKeptUp(t *testing.T) {
	default1, err := policy.Default().Compile() // one replay, 60 ms
	if err != nil {
		t.Fatal(err)
	}
	twice := policy.Default()
	twice.Replays = 2
	default2, err := twice.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		r    generator.Result
		lag  float64 // us
		line *policy.Timeline
		want string
	}{
		{"all was sent", generator.Result{Sent: 10, Lost: 4, Replays: 6}, 15_000, default1, ""},
		{"every loss has its replay", generator.Result{Sent: 10, Lost: 4, Replays: 4}, 0, default1, ""},
		{"a request was left out", generator.Result{Sent: 10, Skipped: 1}, 0, default1, "left 1 requests out"},
		{"late", generator.Result{Sent: 10}, 15_001, default1, "15.001ms late"},
		{"not taken", generator.Result{Sent: 10, Unsent: 3, Error: "no buffer"}, 0, default1, "no buffer"},
		{"a replay was left out", generator.Result{Sent: 10, Lost: 4, Replays: 3}, 0, default1, "made 3 replays"},
		{"a second replay was left out", generator.Result{Sent: 10, Lost: 4, Replays: 7}, 0, default2, "have 8"},
	} {
		c.r.Lag = &generator.Quantiles{P99: c.lag}
		err := keptUp(&c.r, c.line)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A pair whose load turns out to be far from twice the most, or was not asked for, does not count, whichever it is; without
// enough others there is no figure.
func TestOverloadPairs(t *testing.T) {
	behind := errors.New("fell behind")
	for _, c := range []struct {
		rates, most []float64
		behind      int // of the slices, or none
		count       int // pairs
		want        string
	}{
		{[]float64{200, 200}, []float64{100, 80}, -1, 2, ""},
		{[]float64{200, 200}, []float64{100, 111}, -1, 2, ""},
		{[]float64{200, 200, 224}, []float64{100, 112, 112}, -1, 3, ""},
		{[]float64{150, 200, 200}, []float64{100, 100, 100}, -1, 3, ""},
		{[]float64{200, 200, 200}, []float64{100, 100, 100}, 1, 3, ""},
		{[]float64{150, 150, 150, 200}, []float64{100, 100, 100, 100}, -1, 4, "only 1 of 4 pairs count"},
		{[]float64{200, 150, 150, 150}, []float64{100, 100, 100, 100}, -1, 4, "only 1.50 times"},
	} {
		var order strings.Builder
		opened, closed := 0, 0
		ours, theirs, err := overloadPairs(2, func() (overloadSlice, error) {
			order.WriteString("a")
			s := overloadSlice{rate: c.rates[opened]}
			if opened == c.behind {
				s.behind = behind
			}
			opened++
			return s, nil
		}, func() (sample, error) {
			order.WriteString("b")
			closed++
			return sample{PerSecond: c.most[closed-1]}, nil
		})
		if opened != c.count || closed != c.count || order.String() != "abbaabba"[:order.Len()] {
			t.Errorf("%+v: measured %s", c, order.String())
		}
		if c.want == "" && (err != nil || len(ours) != 2 || len(theirs) != 2) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, %d and %d", c, err, len(ours), len(theirs))
		}
	}
	if _, _, err := overloadPairs(2, func() (overloadSlice, error) { return overloadSlice{}, behind }, func() (sample, error) { return sample{}, nil }); !errors.Is(err, behind) {
		t.Errorf("an error is %v", err)
	}
}
