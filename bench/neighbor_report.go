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

	generator "github.com/weirhq/weir/internal/load"
)

// neighborReport is what the measurement found.
type neighborReport struct {
	Machine string
	Plan    neighborPlan
	Gate    float64
	Attacks []neighborRow
	Ratios  map[string]float64 `json:"ratios"`

	lines io.Writer // where lines go, each as soon as it is known
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
	Pairs           []float64 // p99 attacked / alone, where the sender was in time
	LeftOut         int       `json:",omitempty"` // pairs in which it was not
	Undecided       bool      `json:",omitempty"` // too many of them to judge the others
	Median          float64   // of the pairs
	Low, High       float64   // of the pairs
	Lost            int       // of the neighbor's requests
	Late            float64   // p99 of how late the neighbor's sender was, alone, in its worst slice of all
	LateAttacked    float64   // and attacked

	alone, attacked *hdrhistogram.Histogram
}

type quantiles struct{ P50, P99, P999 float64 }

func quantilesOf(h *hdrhistogram.Histogram) quantiles {
	return quantiles{micros(h.ValueAtPercentile(50)), micros(h.ValueAtPercentile(99)), micros(h.ValueAtPercentile(99.9))}
}

func micros(ns int64) float64 { return float64(ns) / 1000 }

// take adds a pair of slices, unless the sender was late in one of them.
func (r *neighborRow) take(alone, attacked *generator.Result) {
	r.Late, r.LateAttacked = max(r.Late, alone.Lag.P99), max(r.LateAttacked, attacked.Lag.P99)
	if alone.Lag.P99 > mostLate || attacked.Lag.P99 > mostLate {
		r.LeftOut++
		return
	}
	r.Lost += int(attacked.Lost + attacked.Skipped)
	r.Pairs = append(r.Pairs, attacked.Latency.P99/alone.Latency.P99)
	if r.alone == nil {
		r.alone, r.attacked = alone.Latencies, attacked.Latencies
		return
	}
	r.alone.Merge(alone.Latencies)
	r.attacked.Merge(attacked.Latencies)
}

// finish sums the pairs up, of which so many were wanted.
func (r *neighborRow) finish(wanted int) {
	r.Undecided = len(r.Pairs) < wanted
	if len(r.Pairs) == 0 {
		return
	}
	r.Low, r.High, r.Median = slices.Min(r.Pairs), slices.Max(r.Pairs), median(r.Pairs)
	if r.alone != nil {
		r.Alone, r.Attacked = quantilesOf(r.alone), quantilesOf(r.attacked)
	}
}

func (r *neighborRow) line() string {
	return fmt.Sprintf("%-11s %9.0f %9.0f %9.0f %6.2f %8.0f | %6.0f %6.0f %7.0f | %6.0f %6.0f %7.0f | %5.2f  %5.2f - %-6.2f %5d %6.0f %6.0f %5d",
		r.Attack, r.Most, r.Rate, r.Took, r.Cores, r.Dropped,
		r.Alone.P50, r.Alone.P99, r.Alone.P999, r.Attacked.P50, r.Attacked.P99, r.Attacked.P999,
		r.Median, r.Low, r.High, r.Lost, r.Late, r.LateAttacked, r.LeftOut)
}

// add adds a row.
func (r *neighborReport) add(row neighborRow) {
	fmt.Fprintln(r.lines, row.line())
	r.Attacks = append(r.Attacks, row)
}

// end writes the report as JSON, if that was asked for, and tells whether it is within the gate.
func (r *neighborReport) end(w io.Writer) error {
	worst := 0.0
	var undecided []string
	for i := range r.Attacks {
		worst = max(worst, r.Attacks[i].Median)
		if r.Attacks[i].Undecided {
			undecided = append(undecided, r.Attacks[i].Attack)
		}
	}
	r.Ratios = map[string]float64{"neighbor": worst}
	if r.Plan.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.lines, "worst median %.2f, gate %.1f\n", worst, r.Gate)
	if len(undecided) > 0 {
		return fmt.Errorf("the neighbor's sender itself was too late in too many slices, with or without an attack: the machine has other work, and the figures judge nothing (%s)",
			strings.Join(undecided, ", "))
	}
	if worst > r.Gate {
		return fmt.Errorf("an attack multiplies the neighbor's p99 by %.2f, more than %.1f: %w", worst, r.Gate, errGate)
	}
	return nil
}

// head says what the lines are.
func (r *neighborReport) head() {
	w := r.lines
	fmt.Fprintf(w, "%s\nneighbor: %.0f requests a second, open loop, %d flows, AES, one bucket; %d pairs of %v\n",
		r.Machine, r.Plan.Rate, r.Plan.Flows, r.Plan.pairs(), r.Plan.Slice)
	fmt.Fprintf(w, "%-11s %9s %9s %9s %6s %8s | %22s | %22s | %s\n", "", "flood/s", "sent/s", "taken/s", "cores", "dropped",
		"alone p50 p99 p99.9 us", "attacked", "p99 attacked/alone, lost, sender late p99 us alone, attacked; pairs left out")
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
