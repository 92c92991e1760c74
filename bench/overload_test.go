package main

import (
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

// A load that turns out to be far from twice the most gives no figure, whichever pair it is in.
func TestOverloaded(t *testing.T) {
	for _, c := range []struct {
		rates, most []float64
		ok          bool
	}{
		{[]float64{200, 200}, []float64{100, 80}, true},
		{[]float64{200, 200}, []float64{100, 111}, true},
		{[]float64{200, 200}, []float64{100, 112}, false},
		{[]float64{150, 200}, []float64{100, 100}, false},
	} {
		if err := overloaded(c.rates, samples(c.most)); (err == nil) != c.ok {
			t.Errorf("%v of %v: %v", c.rates, c.most, err)
		}
	}
}
