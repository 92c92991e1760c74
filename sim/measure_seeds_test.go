package sim

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// TestMeasureSummarize has three runs of which one, two and three requests of four were decided.
func TestMeasureSummarize(t *testing.T) {
	var runs []*Measures
	for decided := range uint64(3) {
		p := newScript(t, scriptScenario(), MeasureOptions{})
		for n := range uint64(4) {
			p.ask(10, n+1)
			if n <= decided {
				p.decide(10+time.Duration(n+1), n+1, 0, core.Granted)
			} else {
				p.decide(70, n+1, -1, core.TimedOut)
			}
		}
		runs = append(runs, p.finish())
	}
	all := Summarize(runs)
	i := slices.IndexFunc(all.Scalars, func(s Spread) bool { return s.Name == "availability_percent" })
	// Standard deviation 25, so 4.303 * 25 / sqrt(3).
	if s := all.Scalars[i]; s.Runs != 3 || s.Mean != 50 || s.Min != 25 || s.Max != 75 || math.Abs(s.Half-62.1084) > 1e-4 {
		t.Errorf("%+v", s)
	}
	i = slices.IndexFunc(all.Scalars, func(s Spread) bool { return s.Name == "steering_p50_ms" })
	if all.Scalars[i] != (Spread{Name: "steering_p50_ms"}) {
		t.Errorf("nothing was steered: %+v", all.Scalars[i])
	}
	if all.Latency.Decided.Count() != 6 || all.Latency.TimedOut.Count() != 6 || all.Latency.Decided.Max() != int64(3*at) {
		t.Errorf("latencies of all runs: %d decided, %d timed out", all.Latency.Decided.Count(), all.Latency.TimedOut.Count())
	}
	if b := all.Timeline.Bins[0]; b.Submitted != 12 || b.Decided != 6 {
		t.Errorf("the first bin of all runs: %+v", b)
	}
	if runs[0].Latency.Decided.Count() != 1 || runs[0].Timeline.Bins[0].Submitted != 4 {
		t.Error("a run was changed")
	}
	one := Summarize(runs[:1])
	if s := one.Scalars[1]; s.Runs != 1 || s.Half != 0 || s.Mean != 25 {
		t.Errorf("one run: %+v", s)
	}
}

func TestMeasureStudent(t *testing.T) {
	for _, tt := range []struct {
		freedom int
		want    float64
	}{{1, 12.706}, {10, 2.228}, {30, 2.042}, {39, 2.042}, {40, 2.021}, {119, 2.000}, {1000, 1.980}} {
		if got := student95(tt.freedom); got != tt.want {
			t.Errorf("%d degrees of freedom: %v, want %v", tt.freedom, got, tt.want)
		}
	}
}

// TestMeasureScalars holds names to their form, and to being there once.
func TestMeasureScalars(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scalars() {
		if seen[s.Name] || s.Doc == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Errorf("scalar %q: %q", s.Name, s.Doc)
		}
		seen[s.Name] = true
	}
}

// TestMeasuresJSON holds the names that others read.
func TestMeasuresJSON(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{Bin: time.Second})
	p.fault(100, 0, true)
	p.ask(0, 1, bucketOf("b", 5, 1))
	p.grantAt(1, 0, 1, 2)
	p.respond(1, 1, 0, core.DatagramNotAnswer, true, true)
	text, err := json.Marshal(p.finish())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"requests":{"submitted":1,"refused":0,"granted":1,`, `"arrival_oracle":{"judged":1,`, `"net_tokens":{"windows":1,`,
		`"limits":[{"limit_tokens":5,`, `"decision_latency_ns":{"decided":{"count":1,"min":2000000,"mean":2000000,"p50":2000000,`,
		`"timeline":{"bin_ns":1000000000,"bins":[{"submitted":1,"decided":1,`, `"faults":[{"fault":0,"begin_ns":100000000,"end_ns":10000000000,`,
		`"verdicts":{"granted":1,"rejected":0,"repeat_granted":0,`, `"not_an_answer":1,`, `"requests_and_reports":{"link":0,"burst":0,"partition":0,`,
		`"services":[{"service":0,`, `"measured_for_ns":10000000000}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if _, err := json.Marshal(Summarize([]*Measures{&p.m.out})); err != nil {
		t.Error(err)
	}
}
