package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// neighborReport is what the measurement found.
type neighborReport struct {
	Machine string
	Plan    neighborPlan
	Gate    float64
	Attacks []neighborRow
	Ratios  map[string]float64 `json:"ratios"`
}

// neighborRow is one attack. Times are in microseconds.
type neighborRow struct {
	Attack          string
	Most            float64 // datagrams of it that the server took in a second of a flood
	Rate            float64 // what it was sent at
	Took            float64 // datagrams of it that the server took in a second, in the last slice
	Cores           float64 // of the server, in that
	Dropped         float64 // by the kernel
	Alone, Attacked quantiles
	Pairs           []float64 // p99 attacked / alone
	Median          float64   // of the pairs
	Low, High       float64   // of the pairs
	Lost            int       // of the neighbor's requests
	Late            float64   // p99 of how late the neighbor's sender was, alone, in its worst slice
	LateAttacked    float64   // and attacked
}

type quantiles struct{ P50, P99, P999 float64 }

func quantilesOf(h *hdrhistogram.Histogram) quantiles {
	return quantiles{micros(h.ValueAtPercentile(50)), micros(h.ValueAtPercentile(99)), micros(h.ValueAtPercentile(99.9))}
}

func micros(ns int64) float64 { return float64(ns) / 1000 }

func (r *neighborRow) finish() {
	sorted := slices.Sorted(slices.Values(r.Pairs))
	n := len(sorted)
	r.Low, r.High = sorted[0], sorted[n-1]
	r.Median = (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (r *neighborRow) line() string {
	return fmt.Sprintf("%-11s %9.0f %9.0f %9.0f %6.2f %8.0f | %6.0f %6.0f %7.0f | %6.0f %6.0f %7.0f | %5.2f  %5.2f - %-6.2f %5d %6.0f %6.0f",
		r.Attack, r.Most, r.Rate, r.Took, r.Cores, r.Dropped,
		r.Alone.P50, r.Alone.P99, r.Alone.P999, r.Attacked.P50, r.Attacked.P99, r.Attacked.P999,
		r.Median, r.Low, r.High, r.Lost, r.Late, r.LateAttacked)
}

// print writes the report, and tells whether it is within the gate.
func (r *neighborReport) print(w io.Writer) error {
	worst, late := 0.0, 0.0
	for i := range r.Attacks {
		worst = max(worst, r.Attacks[i].Median)
		late = max(late, r.Attacks[i].Late)
	}
	r.Ratios = map[string]float64{"neighbor": worst}
	if r.Plan.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	} else {
		r.table(w)
	}
	if late > mostLate {
		return fmt.Errorf("the neighbor's sender was up to %.1f ms late when nobody attacked: the machine has other work, and the figures judge nothing", late/1000)
	}
	if worst > r.Gate {
		return fmt.Errorf("an attack multiplies the neighbor's p99 by %.2f, more than %.1f: %w", worst, r.Gate, errGate)
	}
	return nil
}

func (r *neighborReport) table(w io.Writer) {
	fmt.Fprintf(w, "%s\nneighbor: %.0f requests a second, open loop, %d flows, AES, one bucket; %d pairs of %v\n",
		r.Machine, r.Plan.Rate, r.Plan.Flows, 2*r.Plan.Groups, r.Plan.Slice)
	fmt.Fprintf(w, "%-11s %9s %9s %9s %6s %8s | %22s | %22s | %s\n", "", "flood/s", "sent/s", "taken/s", "cores", "dropped",
		"alone p50 p99 p99.9 us", "attacked", "p99 attacked/alone, lost, sender late p99 us alone, attacked")
	for i := range r.Attacks {
		fmt.Fprintln(w, r.Attacks[i].line())
	}
	fmt.Fprintf(w, "worst median %.2f, gate %.1f\n", r.Ratios["neighbor"], r.Gate)
}

// machine says where this runs, and what else does.
func machine() string {
	load, _ := os.ReadFile("/proc/loadavg")
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s/%s, %s, %d processors, %s, load %s",
		runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), model, strings.TrimSpace(string(load)))
}
