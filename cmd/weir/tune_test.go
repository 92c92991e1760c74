package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simtune"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// TestReadRTT holds what --rtt takes: distributions as scenarios have them, and files.
func TestReadRTT(t *testing.T) {
	dir := t.TempDir()
	list, broken := filepath.Join(dir, "rtt.txt"), filepath.Join(dir, "broken.txt")
	for name, text := range map[string]string{list: "1ms 9\n50ms\n", broken: "1ms\nfast\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]sim.Dist{
		"0.2ms":               sim.Constant(200 * time.Microsecond),
		"constant 0.2ms":      sim.Constant(200 * time.Microsecond),
		"lognormal 30ms 36ms": sim.Lognormal(30*time.Millisecond, 36*time.Millisecond),
	} {
		if got, err := readRTT(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	got, err := readRTT(list)
	if err != nil || got.At(1<<63) != time.Millisecond || got.At(1<<64-1) != 50*time.Millisecond {
		t.Errorf("the file is %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                   "or the name of a file that ends in .hlog or .txt",
		"fast":               `"fast" is no duration such as 5ms, or the name of a file`,
		"lognormal 9ms 1ms":  "the median is above the 99th percentile",
		broken:               `broken.txt: line 2: "fast" must be a duration`,
		dir + "/none.hlog":   "none.hlog cannot be read: no such file or directory",
		broken + " server 7": "broken.txt",
	} {
		if _, err := readRTT(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestParseLoss(t *testing.T) {
	for text, want := range map[string]sim.PerMillion{"0%": 0, "1%": 10_000, "0.05%": 500, "50%": 500_000} {
		if got, err := parseLoss(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "-1%", "51%", "NaN%", "x%", "%"} {
		if got, err := parseLoss(text); err == nil || !strings.Contains(err.Error(), "is no percentage from 0% to 50%") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// TestTuneIsRefused holds that wrong flags are told by name, with status 64, before anything is played
// or written.
func TestTuneIsRefused(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	for line, want := range map[string]string{
		"tune":                                       "--rtt",
		"tune --rtt fast":                            "--rtt: distribution",
		"tune --rtt 1ms --loss 1":                    `--loss: "1" is no percentage`,
		"tune --rtt 1ms --objective speed":           `--objective: "speed" is no objective; there are balanced,`,
		"tune --rtt 1ms --servers 1":                 "1 servers: give 2 to 9",
		"tune --rtt 1ms --max-horizon 3s":            "a horizon of 3s: give 60ms, which the default has",
		"tune --rtt 400ms":                           "no decision can come within a horizon of 300ms",
		"tune --rtt 1ms --seed 18446744073709551615": "--seed: give at most",
		"tune --rtt 1ms --json --markdown":           "can't be used together",
		"tune --rtt 1ms --report .":                  "is a directory",
	} {
		var out, errs bytes.Buffer
		std := &stdio{out: &out, err: &errs, getenv: func(string) string { return "" }}
		args := strings.Fields(line)
		if !strings.Contains(line, "--report") {
			args = append(args, "--report", page)
		}
		if status := run(t.Context(), args, std); status != exitUsage || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("weir %s: status %d, %q, want %q", line, status, errs.String(), want)
		}
	}
	if left, _ := filepath.Glob(filepath.Dir(page) + "/*"); left != nil {
		t.Errorf("there is %q", left)
	}
}

// TestTuneJSON holds that the object has the recommendation, each policy with its measures over all
// scenarios and in each, and guards.
func TestTuneJSON(t *testing.T) {
	spread := func(mean float64) sim.Spread { return sim.Spread{Name: "x", Runs: 2, Mean: mean} }
	cells := make([]sim.Spread, len(simtune.Measures()))
	for i := range cells {
		cells[i] = spread(float64(i))
	}
	quick := policy.Default()
	quick.Unit = 250 * time.Microsecond
	r := &simtune.Result{
		Scenarios: []string{"health"}, Weights: []int{5}, Recommended: 1, Gain: 40, GainLow: 30, GainHigh: 50, ConfirmSeeds: []uint64{8, 9},
		Rows: []simtune.Row{
			{Name: "default", Policy: policy.Default(), Cells: cells, ByScenario: []simtune.Values{{simtune.P99: 7}}},
			{
				Name: "recommended", Policy: quick, Cells: cells, ByScenario: []simtune.Values{{simtune.P99: 3}}, Cost: spread(0.6), Front: true,
				Breaches: []simtune.Breach{{Scenario: 0, Measure: simtune.False, Value: 3, Bound: 1}},
			},
		},
		Changes: []simtune.Change{{From: "a", To: "b", Saves: 12, Gains: []simtune.Effect{{Measure: simtune.P99, Without: 7, With: 3}}}},
	}
	var b bytes.Buffer
	if err := writeTuneJSON(&b, &tuneCmd{RTT: "1ms", Loss: "2%", Servers: 3, Seed: 7}, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"rtt":"1ms","loss":"2%","servers":3`, `"seed":"7"`, `"scenarios":[{"name":"health","weight":5}]`,
		`"recommended":"recommended","policy":"unit=250us replays=1 `, `"saves":{"percent":40,"low_95":30,"high_95":50}`,
		`"by_scenario":{"health":{`, `"latency_p99_ms":3`, `"pareto_front":true`,
		`"beyond_guards":[{"measure":"false_percent","scenario":"health","value":3,"allowed":1}]`, `"beyond_guards":[]`,
		`"why":[{"from":"a","to":"b","saves_percent":12,"gains":[{"measure":"latency_p99_ms","without":7,"with":3}],"losses":[]}]`,
		`"confirming_seeds":["8","9"]`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s lacks %s", &b, want)
		}
	}
}
