package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// comparePlan is how the comparison is made.
type comparePlan struct {
	Slice  time.Duration // one measurement
	Groups int           // A B B A: two pairs each
	Only   []string      `json:",omitempty"` // figures; none: all
	Quick  bool          `json:",omitempty"` // and without the peers
	JSON   bool          `json:"-"`
	Veth   bool          `json:",omitempty"` // over a network of virtual devices, and not loopback
}

func parseCompare(args []string) (comparePlan, error) {
	var p comparePlan
	f := flag.NewFlagSet(compareCommand, flag.ContinueOnError)
	f.DurationVar(&p.Slice, "slice", 2*time.Second, "length of one measurement")
	f.IntVar(&p.Groups, "groups", 5, "groups of two pairs")
	f.Func("only", "only these `figures`, with commas between them: "+strings.Join(figureNames(), ", "), func(names string) error {
		for name := range strings.SplitSeq(names, ",") {
			if !slices.Contains(figureNames(), name) {
				return fmt.Errorf("there is no figure %q; give some of %s", name, strings.Join(figureNames(), ", "))
			}
			p.Only = append(p.Only, name)
		}
		return nil
	})
	f.BoolVar(&p.JSON, "json", false, "print JSON")
	f.BoolVar(&p.Quick, "quick", false, "in half a minute, rough, and without the peers; --slice and --groups are then 400ms and 2")
	f.BoolVar(&p.Veth, "veth", false, "over virtual network devices that cut bursts up into packets, and not loopback: "+strings.Join(vethFigures, ", ")+
		" or --only, without gates; as root, or where users may make namespaces")
	if err := readFlags(f, args); err != nil {
		return p, err
	}
	if p.Quick {
		p.Slice, p.Groups = 400*time.Millisecond, 2
	}
	switch {
	case f.NArg() > 0:
		return p, fmt.Errorf("there is no command or argument %q", f.Arg(0))
	case p.Slice <= 0 || p.Groups < 1:
		return p, fmt.Errorf("the slice and the groups are above 0")
	}
	return p, nil
}

// sample is one measurement of one subject.
type sample struct {
	PerSecond float64
	CPU       float64 // microseconds of a processor for each decision, or datagram
	P50       float64 // microseconds, as those that follow
	P99, P999 float64
	Lost      float64 // share of the requests that had no answer
}

func perSecond(s *sample) float64 { return s.PerSecond }
func cpu(s *sample) float64       { return s.CPU }
func p50(s *sample) float64       { return s.P50 }
func p99(s *sample) float64       { return s.P99 }

// bar is one figure that a comparison comes to: ours by theirs, and what it may be.
type bar struct {
	name, about string
	of          func(*sample) float64
	gate, goal  float64 // 0: none
	most        bool    // the gate is the most that the figure may be, not the least
}

// beyond reports whether a figure is beyond the gate.
func (b *bar) beyond(ratio float64) bool {
	switch {
	case b.gate == 0:
		return false
	case b.most:
		return !(ratio <= b.gate)
	}
	return !(ratio >= b.gate)
}

// comparison measures two subjects in turns, for one bar or several.
type comparison struct {
	bars []bar
	run  func(ctx context.Context, c *comparing) (ours, theirs []sample, err error)
}

// vethFigures are what a network matters to most.
var vethFigures = []string{"gso", "gso_client"}

// wants reports whether a plan has a comparison in it.
func (p *comparePlan) wants(c *comparison) bool {
	only := p.Only
	if p.Veth && len(only) == 0 {
		only = vethFigures
	}
	return len(only) == 0 || slices.ContainsFunc(only, c.comesTo)
}

// comparing is a run of comparisons with one server.
type comparing struct {
	plan   comparePlan
	tenant tenant
	binary string // of the server
	ours   *subject
	peers  *peers
}

// place is where servers are started.
func (c *comparing) place() place {
	if !c.plan.Veth {
		return place{}
	}
	v := newVeth()
	return place{veth: &v}
}

var comparisons = slices.Concat(ownComparisons, peerComparisons)

// ownComparisons hold the server, or its client, against a floor or against itself.
var ownComparisons = []comparison{
	{[]bar{
		{"throughput", "decisions a second, 64 lone ones in flight, by the floor's", perSecond, 0.75, 0.9, false},
		{"cpu", "processor time a decision, the same", cpu, 1.5, 1.2, true},
	}, withFloor(64, 64, true, generator.Work{})},
	{[]bar{
		{"throughput_wide", "decisions a second, of 3 buckets and a guard", perSecond, 0.65, 0.8, false},
	}, withFloor(64, 64, true, generator.Work{Resources: 3, Guards: 1, Buckets: 3})},
	{[]bar{
		{"gso", "decisions a second, 256 in flight in bursts, on loopback", perSecond, 2, 4, false},
	}, withFloor(4, 256, false, generator.Work{})},
	{[]bar{
		{"gso_client", "decisions a second of 256 goroutines with one client, on loopback, by the floor's of 64 lone requests", perSecond, 1.2, 2, false},
	}, compareCrowd},
	{[]bar{
		{"rtt_p50", "p50 of Acquire, one in flight, by a bare round trip's", p50, 1.4, 1.15, true},
	}, compareAcquire},
	{[]bar{
		{"overload", "decisions in time, a second, asked for twice the most, by that most", perSecond, 0.7, 0.9, false},
	}, compareOverload},
	{[]bar{
		{"junk", "processor time of a forged datagram, by a decision's", cpu, 0.6, 0.4, true},
	}, compareJunk},
}

func comparisonNames() (names []string) {
	for i := range comparisons {
		names = append(names, comparisons[i].names()...)
	}
	return names
}

// names are those of a comparison's figures.
func (c *comparison) names() (names []string) {
	for _, b := range c.bars {
		names = append(names, b.name)
	}
	return names
}

// figureNames are what can be measured alone.
func figureNames() []string { return append(comparisonNames(), systemsName) }

// comesTo reports whether a comparison comes to a figure.
func (c *comparison) comesTo(name string) bool { return slices.Contains(c.names(), name) }

func compare(ctx context.Context, args []string) error {
	plan, err := parseCompare(args)
	if err != nil {
		return err
	}
	if plan.Veth {
		if err := enterNetwork(ctx); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	run := comparing{plan: plan}
	if run.tenant, err = newTenant("bench", 1, 0); err != nil {
		return err
	}
	run.peers = &peers{plan: plan, dir: dir}
	if run.binary, err = buildWeir(ctx, dir); err != nil {
		return err
	}
	if run.ours, err = startWeirOn(ctx, run.place(), run.binary, run.tenant); err != nil {
		return err
	}
	defer run.ours.end()
	report := compareReport{Machine: machine(), Plan: plan, Ratios: map[string]float64{}, lines: linesTo(plan.JSON)}
	fmt.Fprintln(report.lines, report.Machine)
	for i := range comparisons {
		c := &comparisons[i]
		if !plan.wants(c) {
			continue
		}
		ours, theirs, err := c.run(ctx, &run)
		if err != nil && ctx.Err() != nil { // also where a build or a start is skipped for it
			return fmt.Errorf("%s: %w", c.bars[0].name, context.Cause(ctx))
		}
		if errors.Is(err, errSkipped) {
			report.skip(err, c.names()...)
			continue
		}
		if err != nil { // what else can be measured is
			report.fail(err, c.names()...)
			continue
		}
		for k := range c.bars {
			report.add(&c.bars[k], ours, theirs)
		}
	}
	if len(plan.Only) == 0 && !plan.Veth || slices.Contains(plan.Only, systemsName) {
		if err := run.measureSystems(ctx, &report); err != nil {
			if ctx.Err() != nil {
				return err
			}
			report.fail(err, systemsName)
		}
	}
	return report.end(os.Stdout)
}

// linesTo is where the lines of a report go, each as soon as it is known: past the JSON, if that is asked for.
func linesTo(asJSON bool) io.Writer {
	if asJSON {
		return os.Stderr
	}
	return os.Stdout
}

// withFloor compares the server with the floor, under one load.
func withFloor(flows, inFlight int, lone bool, work generator.Work) func(context.Context, *comparing) (ours, theirs []sample, err error) {
	return func(ctx context.Context, c *comparing) (ours, theirs []sample, err error) {
		floor, err := startFloorOn(ctx, c.place(), c.tenant, work.Guards, max(1, work.Resources))
		if err != nil {
			return nil, nil, err
		}
		defer floor.end()
		cfg := generator.Config{
			Keys: []apikey.Key{c.tenant.key}, Flows: flows, InFlight: inFlight, NoBursts: lone, Work: work,
			For: c.plan.Slice, WarmUp: c.plan.Slice / 5,
		}
		return inTurns(c.plan.Groups, func() (sample, error) { return measure(ctx, c.ours, cfg) },
			func() (sample, error) { return measure(ctx, floor, cfg) })
	}
}

// inTurns measures A B B A, so that what changes slowly changes both alike, and returns the samples by pairs.
func inTurns(groups int, a, b func() (sample, error)) (as, bs []sample, err error) {
	for range groups {
		for _, ours := range []bool{true, false, false, true} {
			of, into := a, &as
			if !ours {
				of, into = b, &bs
			}
			got, err := of()
			if err != nil {
				return nil, nil, err
			}
			*into = append(*into, got)
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
	case r.Interrupted:
		return sample{}, context.Cause(ctx)
	case r.Wrong > 0 || r.Denied > 0:
		return sample{}, fmt.Errorf("%s: %d answers were wrong, %d denied", s.name, r.Wrong, r.Denied)
	case r.Granted == 0:
		return sample{}, fmt.Errorf("%s: nobody answered", s.name)
	}
	return sample{
		PerSecond: r.PerSecond, P50: r.Latency.P50, P99: r.Latency.P99, P999: r.Latency.P999,
		Lost: float64(r.Lost+r.Skipped) / float64(r.Sent+r.Skipped),
		CPU:  float64((after - before).Microseconds()) / (float64(r.Granted) * (cfg.WarmUp + cfg.For).Seconds() / cfg.For.Seconds()),
	}, nil
}

// compareReport is what the comparison found.
type compareReport struct {
	Machine string
	Plan    comparePlan
	Rows    []*compareRow
	Ratios  map[string]float64 `json:"ratios"`
	Skipped map[string]string  `json:"skipped,omitempty"` // figures, and why
	Failed  map[string]string  `json:"failed,omitempty"`  // figures that could not be measured, and why
	Systems []*systemRow       `json:"systems,omitempty"`

	lines io.Writer
}

// compareRow is one figure.
type compareRow struct {
	Name, About  string
	Ours, Theirs float64 // medians
	Ratio        float64 // median of the pairs
	Low, High    float64 // of the pairs
	Pairs        int
	Gate, Goal   float64
	Beyond       bool // the gate
}

func (r *compareReport) add(b *bar, ours, theirs []sample) *compareRow {
	var ratios, as, bs []float64
	for i := range ours {
		as, bs = append(as, b.of(&ours[i])), append(bs, b.of(&theirs[i]))
		ratios = append(ratios, as[i]/bs[i])
	}
	row := &compareRow{
		Name: b.name, About: b.about, Ours: median(as), Theirs: median(bs), Ratio: median(ratios),
		Low: slices.Min(ratios), High: slices.Max(ratios), Pairs: len(ratios), Gate: b.gate, Goal: b.goal,
	}
	if r.Plan.Veth {
		row.Gate, row.Goal = 0, 0 // they are for loopback
		row.About = strings.Replace(row.About, "on loopback", "over veth", 1)
	}
	row.Beyond = row.Gate != 0 && b.beyond(row.Ratio)
	if len(r.Rows) == 0 {
		fmt.Fprintf(r.lines, "%-19s %10s %10s | %6s  %-14s | %5s %5s\n", "", "ours", "theirs", "ratio", "of the pairs", "gate", "goal")
	}
	fmt.Fprintln(r.lines, row.line())
	r.Rows = append(r.Rows, row)
	r.Ratios[b.name] = row.Ratio
	return row
}

// fail notes why figures could not be measured.
func (r *compareReport) fail(err error, names ...string) {
	if r.Failed == nil {
		r.Failed = map[string]string{}
	}
	for _, name := range names {
		r.Failed[name] = strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(r.lines, "%-19s FAILED: %s\n", name, r.Failed[name])
	}
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (r *compareRow) line() string {
	verdict, bounds := "within", fmt.Sprintf("%5.3f %5.3f", r.Gate, r.Goal)
	switch {
	case r.Gate == 0:
		verdict, bounds = "      ", fmt.Sprintf("%5s %5s", "-", "-")
	case r.Beyond:
		verdict = "BEYOND"
	}
	return fmt.Sprintf("%-19s %10.2f %10.2f | %6.3f  %5.3f - %-6.3f | %s  %s | %s", r.Name, r.Ours, r.Theirs, r.Ratio, r.Low, r.High, bounds, verdict, r.About)
}

// end writes the report as JSON, if that was asked for, and tells whether every figure is within its gate.
func (r *compareReport) end(w io.Writer) error {
	if r.Plan.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	if len(r.Failed) > 0 {
		return fmt.Errorf("not measured: %s", strings.Join(slices.Sorted(maps.Keys(r.Failed)), ", "))
	}
	if len(r.Rows)+len(r.Systems) == 0 {
		return errors.New("nothing was measured: all was skipped")
	}
	var beyond []string
	for _, row := range r.Rows {
		if row.Beyond {
			beyond = append(beyond, row.Name)
		}
	}
	if len(beyond) > 0 {
		return fmt.Errorf("%w: %s", errGate, strings.Join(beyond, ", "))
	}
	return nil
}
