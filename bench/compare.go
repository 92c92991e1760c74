package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// comparePlan is how the comparison is made.
type comparePlan struct {
	Slice  time.Duration // one measurement
	Groups int           // A B B A: two pairs each
	Only   string        `json:",omitempty"`
	JSON   bool          `json:"-"`
}

func parseCompare(args []string) (comparePlan, error) {
	var p comparePlan
	f := flag.NewFlagSet(compareCommand, flag.ContinueOnError)
	f.DurationVar(&p.Slice, "slice", 2*time.Second, "length of one measurement")
	f.IntVar(&p.Groups, "groups", 5, "groups of two pairs")
	f.StringVar(&p.Only, "only", "", "only this comparison")
	f.BoolVar(&p.JSON, "json", false, "print JSON")
	quick := f.Bool("quick", false, "in less than a minute, without the peers")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	if *quick {
		p.Slice, p.Groups = 500*time.Millisecond, 2
	}
	if p.Slice <= 0 || p.Groups < 1 {
		return p, fmt.Errorf("the slice and the groups are above 0")
	}
	return p, nil
}

// sample is one measurement of one subject.
type sample struct {
	PerSecond float64
	CPU       float64 // microseconds a decision
	P50, P99  float64 // microseconds
	P999      float64
	ClientCPU float64 // processors
}

// shapes are the comparisons with the floor.
var shapes = []struct {
	name            string
	cpu             string // the name of the same comparison by processor time
	gate, cpuGate   float64
	flows, inFlight int
	work            generator.Work
}{
	{"throughput", "cpu", 0.75, 1.5, 64, 64, generator.Work{}},
	{"throughput_wide", "", 0.65, 0, 64, 64, generator.Work{Resources: 3, Guards: 1, Buckets: 3}},
}

func compare(ctx context.Context, args []string) error {
	plan, err := parseCompare(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t, err := newTenant("bench", 1, 0)
	if err != nil {
		return err
	}
	binary, err := buildWeir(ctx, dir)
	if err != nil {
		return err
	}
	ours, err := startWeir(ctx, binary, t)
	if err != nil {
		return err
	}
	defer ours.end()
	report := compareReport{Machine: machine(), Plan: plan, Ratios: map[string]float64{}}
	for _, s := range shapes {
		if plan.Only != "" && plan.Only != s.name {
			continue
		}
		floor, err := startFloor(t, s.work.Guards, s.work.Resources+btoi(s.work.Resources == 0))
		if err != nil {
			return err
		}
		cfg := generator.Config{Keys: []apikey.Key{t.key}, Flows: s.flows, InFlight: s.inFlight, Work: s.work, For: plan.Slice, WarmUp: plan.Slice / 5}
		a, b, err := pairs(ctx, plan.Groups, ours, floor, cfg)
		floor.end()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		report.add(s.name, s.gate, false, a, b, func(s *sample) float64 { return s.PerSecond })
		if s.cpu != "" {
			report.add(s.cpu, s.cpuGate, true, a, b, func(s *sample) float64 { return s.CPU })
		}
	}
	return report.print(os.Stdout)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pairs measures two subjects in turns, A B B A, and returns their samples by pairs.
func pairs(ctx context.Context, groups int, a, b *subject, cfg generator.Config) (as, bs []sample, err error) {
	for range groups {
		for _, s := range []*subject{a, b, b, a} {
			got, err := measure(ctx, s, cfg)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if s == a {
				as = append(as, got)
			} else {
				bs = append(bs, got)
			}
		}
	}
	return as, bs, nil
}

// measure puts a load on a subject.
func measure(ctx context.Context, s *subject, cfg generator.Config) (sample, error) {
	cfg.Targets = []netip.AddrPort{s.addr}
	before, err := s.cpu()
	if err != nil {
		return sample{}, err
	}
	r, err := generator.Run(ctx, cfg)
	if err != nil {
		return sample{}, err
	}
	after, err := s.cpu()
	switch {
	case err != nil:
		return sample{}, err
	case r.Wrong > 0 || r.Denied > 0:
		return sample{}, fmt.Errorf("%d answers were wrong, %d denied", r.Wrong, r.Denied)
	case r.Granted == 0:
		return sample{}, fmt.Errorf("nobody answered")
	}
	return sample{
		PerSecond: r.PerSecond, P50: r.Latency.P50, P99: r.Latency.P99, P999: r.Latency.P999, ClientCPU: r.ClientCPU,
		CPU: float64((after - before).Microseconds()) / (float64(r.Granted) * (cfg.WarmUp + cfg.For).Seconds() / cfg.For.Seconds()),
	}, nil
}

// compareReport is what the comparison found.
type compareReport struct {
	Machine string
	Plan    comparePlan
	Rows    []compareRow
	Ratios  map[string]float64 `json:"ratios"`
}

type compareRow struct {
	Name         string
	Ours, Theirs float64 // medians
	Ratio        float64 // median of the pairs
	Low, High    float64
	Gate         float64
	Most         bool // the gate is the most that the ratio may be, not the least
}

func (r *compareReport) add(name string, gate float64, most bool, a, b []sample, of func(*sample) float64) {
	var ratios, as, bs []float64
	for i := range a {
		as, bs = append(as, of(&a[i])), append(bs, of(&b[i]))
		ratios = append(ratios, as[i]/bs[i])
	}
	row := compareRow{Name: name, Ours: median(as), Theirs: median(bs), Ratio: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios), Gate: gate, Most: most}
	r.Rows = append(r.Rows, row)
	r.Ratios[name] = row.Ratio
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (r *compareReport) print(w io.Writer) error {
	if r.Plan.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	fmt.Fprintln(w, r.Machine)
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%-16s ours %10.2f theirs %10.2f ratio %5.2f (%.2f to %.2f) gate %.2f\n", row.Name, row.Ours, row.Theirs, row.Ratio, row.Low, row.High, row.Gate)
	}
	return nil
}
