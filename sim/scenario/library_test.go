package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/sim"
)

// golden is what every shipped scenario and variant came to with seed 1.
const golden = "testdata/library.txt"

// maxRequests keeps scenarios of the library small.
const maxRequests = 200_000

// shown are the measures that the golden has besides the digest.
var shown = []string{
	"availability_percent", "granted_percent", "fallback_percent", "latency_p50_ms", "latency_p99_ms",
	"false_grants", "false_denials", "excess_tokens", "executed_again", "datagrams_per_decision",
}

// TestLibrary plays every shipped scenario and variant and compares a digest of all its records,
// and a few measures, with the golden.
func TestLibrary(t *testing.T) {
	all := library(t)
	lines := make([]string, len(all))
	var perfectRuns atomic.Int64
	t.Run("runs", func(t *testing.T) {
		for i, s := range all {
			t.Run(strings.ReplaceAll(s.Name, "/", ","), func(t *testing.T) {
				t.Parallel()
				var m *sim.Measures
				if lines[i], m = play(t, s); holds(t, s, m) {
					perfectRuns.Add(1)
				}
			})
		}
	})
	if n := perfectRuns.Load(); n < 5 {
		t.Errorf("in %d runs nothing goes wrong", n)
	}
	got := "# scenario, requests, digest, and " + strings.Join(shown, ", ") + "; seed 1; -rewrite writes this\n" + strings.Join(lines, "")
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(golden), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(data), "\n")
	for i, line := range strings.Split(got, "\n") {
		if at(want, i) != line {
			t.Errorf("a run is not as it was; if it is meant to differ, go test ./sim/scenario -rewrite\n got %s\nwant %s", line, at(want, i))
		}
	}
}

// holds checks what every shipped scenario promises, and reports whether nothing went wrong in it.
func holds(t *testing.T, s *sim.Scenario, m *sim.Measures) bool {
	t.Helper()
	if s.Purpose != strings.TrimSpace(s.Purpose) || !strings.HasSuffix(s.Purpose, ".") {
		t.Errorf("the purpose is no sentence: %q", s.Purpose)
	}
	if n := m.Requests.Submitted; n == 0 || n > maxRequests {
		t.Errorf("there are %d requests", n)
	}
	if m.Requests.Unended > 0 {
		t.Errorf("%d requests never end", m.Requests.Unended)
	}
	if !perfect(s, m) {
		return false
	}
	if m.Arrival.FalseGrant+m.Arrival.FalseDenial > 0 {
		t.Errorf("nothing goes wrong, but for %d false grants and %d false denials", m.Arrival.FalseGrant, m.Arrival.FalseDenial)
	}
	return true
}

// perfect tells a run in which nothing goes wrong: no fault, no loss, and the oldest server decides
// everything. Then it does so as one perfect server would.
func perfect(s *sim.Scenario, m *sim.Measures) bool {
	lost := uint64(0)
	for i := range m.Losses.Requests {
		lost += m.Losses.Requests[i] + m.Losses.Answers[i]
	}
	return len(s.Faults) == 0 && lost == 0 && m.Requests.TimedOut == 0 && m.Latency.Fallback.Count() == 0
}

// library are all shipped scenarios, each followed by its variants.
func library(t *testing.T) []*sim.Scenario {
	t.Helper()
	var all []*sim.Scenario
	for _, name := range List() {
		f, err := EmbeddedFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, f.Scenario), f.Variants...)
	}
	return all
}

// play plays a scenario with seed 1 and returns its line of the golden.
func play(t *testing.T, s *sim.Scenario) (string, *sim.Measures) {
	t.Helper()
	measurer, err := sim.NewMeasurer(s, sim.MeasureOptions{})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	digest := sim.NewDigest()
	if _, err := sim.Run(s, 1, both{digest, measurer}); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	m, err := measurer.Finish()
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	line := fmt.Sprintf("%s %d %s", s.Name, m.Requests.Submitted, digest.String()[:16])
	for _, name := range shown {
		line += " " + scalar(t, m, name)
	}
	return line + "\n", m
}

func scalar(t *testing.T, m *sim.Measures, name string) string {
	t.Helper()
	for _, s := range sim.Scalars() {
		if s.Name != name {
			continue
		}
		if v, ok := s.Value(m); ok {
			return fmt.Sprintf("%.4g", v)
		}
		return "-"
	}
	t.Fatalf("there is no scalar %s", name)
	return ""
}

// both hands records to two recorders.
type both [2]sim.Recorder

func (b both) Record(r *sim.Record) {
	b[0].Record(r)
	b[1].Record(r)
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}
