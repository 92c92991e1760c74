package main

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// A figure is the median of the pairs, and is held against its gate from the right side; what is no number
// is within none.
func TestCompareReport(t *testing.T) {
	for _, c := range []struct {
		ours, theirs []float64
		gate         float64
		most         bool
		ratio        float64
		beyond       bool
	}{
		{[]float64{3, 8, 10, 4}, []float64{4, 8, 4, 4}, 1, false, 1, false},
		{[]float64{3, 8, 10, 4}, []float64{4, 8, 4, 4}, 1.01, false, 1, true},
		{[]float64{3, 8, 10, 4}, []float64{4, 8, 4, 4}, 1, true, 1, false},
		{[]float64{3, 8, 10, 4}, []float64{4, 8, 4, 4}, 0.99, true, 1, true},
		{[]float64{0}, []float64{0}, 1, true, math.NaN(), true},
		{[]float64{0}, []float64{0}, 1, false, math.NaN(), true},
	} {
		for _, asJSON := range []bool{false, true} {
			var lines, out strings.Builder
			r := compareReport{Plan: comparePlan{JSON: asJSON}, Ratios: map[string]float64{}, lines: &lines}
			b := bar{name: "x", of: perSecond, gate: c.gate, most: c.most}
			row := r.add(&b, samples(c.ours), samples(c.theirs))
			if row.Beyond != c.beyond || row.Ratio != c.ratio && !math.IsNaN(c.ratio) || row.Pairs != len(c.ours) {
				t.Errorf("%+v: %+v", c, row)
			}
			if asJSON && math.IsNaN(c.ratio) {
				continue // JSON has no such number
			}
			if err := r.end(&out); errors.Is(err, errGate) != c.beyond || asJSON == (out.Len() == 0) {
				t.Errorf("%+v: %v, after %s", c, err, out.String())
			}
			var back struct{ Ratios map[string]float64 }
			if asJSON && (json.Unmarshal([]byte(out.String()), &back) != nil || back.Ratios["x"] != c.ratio) {
				t.Errorf("%+v: printed %s", c, out.String())
			}
			if text := lines.String(); strings.Contains(text, "BEYOND") != c.beyond || strings.Count(text, "\n") != 2 {
				t.Errorf("%+v: printed %s", c, text)
			}
		}
	}
}

func samples(v []float64) (s []sample) {
	for _, x := range v {
		s = append(s, sample{PerSecond: x})
	}
	return s
}

// Both are measured equally often, and what is measured side by side is a pair.
func TestInTurns(t *testing.T) {
	var order strings.Builder
	n := 0.0
	measured := func(name string) func() (sample, error) {
		return func() (sample, error) {
			order.WriteString(name)
			n++
			return sample{PerSecond: n}, nil
		}
	}
	as, bs, err := inTurns(2, measured("a"), measured("b"))
	if err != nil || order.String() != "abbaabba" || len(as) != 4 || len(bs) != 4 {
		t.Fatalf("%s: %v, %v, %v", order.String(), as, bs, err)
	}
	for i := range as {
		if d := as[i].PerSecond - bs[i].PerSecond; d != 1 && d != -1 {
			t.Errorf("pair %d: measurements %v and %v", i, as[i].PerSecond, bs[i].PerSecond)
		}
	}
	broken := errors.New("broken")
	if _, _, err := inTurns(1, measured("a"), func() (sample, error) { return sample{}, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// What could not be measured is told, and makes the command fail, whatever else is within its gate.
func TestCompareFailed(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var lines, out strings.Builder
		r := compareReport{Plan: comparePlan{JSON: asJSON}, Rows: []*compareRow{{Name: "cpu", Ratio: 1, Gate: 2}}, lines: &lines}
		r.fail(errors.New("no luck"), "overload")
		err := r.end(&out)
		if err == nil || errors.Is(err, errGate) || !strings.Contains(err.Error(), "overload") {
			t.Errorf("%v", err)
		}
		if !strings.Contains(lines.String(), "overload            FAILED: no luck\n") || asJSON && !strings.Contains(out.String(), "no luck") {
			t.Errorf("printed %s%s", lines.String(), out.String())
		}
	}
}

func TestCompareFlags(t *testing.T) {
	for _, args := range [][]string{{"-slice", "0s"}, {"-groups", "0"}, {"-only", "none"}, {"-only", ""}, {"-only", "cpu,none"}, {"-what"}, {"-json", "neighbor"}} {
		if _, err := parseCompare(args); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	for _, name := range comparisonNames() {
		p, err := parseCompare([]string{"-only", name})
		if err != nil {
			t.Error(err)
		}
		n := 0
		for i := range comparisons {
			if p.wants(&comparisons[i]) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d comparisons come to %s", n, name)
		}
	}
	for args, want := range map[string]string{
		"-only tail,junk -only gso": "gso junk tail", "-only " + systemsName: "", "-veth": strings.Join(vethFigures, " "), "-veth -only cpu": "throughput",
	} {
		p, err := parseCompare(strings.Fields(args))
		var got []string
		for i := range comparisons {
			if p.wants(&comparisons[i]) {
				got = append(got, comparisons[i].bars[0].name)
			}
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v, want %s", args, got, err, want)
		}
	}
	p, err := parseCompare([]string{"-quick", "-json"})
	if spent := p.Slice * time.Duration(4*p.Groups*len(ownComparisons)); err != nil || spent > 50*time.Second || !p.JSON {
		t.Errorf("quick: %+v, %v, %v of measurements", p, err, spent)
	}
}
