package main

import (
	"math"
	"strings"
	"testing"
)

const someMetrics = `# HELP weir_worker_datagrams_total Datagrams.
# TYPE weir_worker_datagrams_total counter
weir_worker_datagrams_total{listen="127.0.0.1:1",worker="0"} %d
weir_worker_datagrams_total{listen="127.0.0.1:1",worker="1"} 100
weir_worker_datagrams_totals 7
process_cpu_seconds_total 1.5
`

func metricsOf(t *testing.T, first string) map[string]float64 {
	t.Helper()
	series, err := parseMetrics(strings.NewReader(strings.ReplaceAll(someMetrics, "%d", first)))
	if err != nil {
		t.Fatal(err)
	}
	return series
}

func TestMetrics(t *testing.T) {
	series := metricsOf(t, "3e+2")
	for name, want := range map[string]float64{"weir_worker_datagrams_total": 400, "process_cpu_seconds_total": 1.5, "weir_worker": 0} {
		if got := sumOf(series, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if _, err := parseMetrics(strings.NewReader("a b\n")); err == nil {
		t.Error("a value that is no number is none")
	}
}

func TestBusiest(t *testing.T) {
	before, after := metricsOf(t, "50"), metricsOf(t, "350")
	after[`weir_worker_datagrams_total{listen="127.0.0.1:1",worker="1"}`] = 200
	if got := busiest(before, after); got != 1.5 {
		t.Errorf("300 and 100: the busiest has %v of the mean, want 1.5", got)
	}
	if got := busiest(after, after); !math.IsNaN(got) {
		t.Errorf("of no load at all the busiest has %v", got)
	}
}

func TestParseWorkers(t *testing.T) {
	for args, good := range map[string]bool{"": true, "--quick": true, "--steering 1s": false, "--lock 0s": false, "--tries 0": false, "more": false} {
		if _, err := parseWorkers(strings.Fields(args)); (err == nil) != good {
			t.Errorf("%q: %v", args, err)
		}
	}
}
