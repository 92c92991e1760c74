package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

// tableWidth is how long lines of the tables are where there is no terminal.
const tableWidth = 120

type simCompareCmd struct {
	Scenarios []string `arg:"" complete:"scenarios" name:"scenario" placeholder:"SCENARIO" help:"Names from weir sim list, or files; /VARIANT behind one is one of its variants."`
	Variants  bool     `help:"Play all variants of each scenario, too."`
	Policy    []string `sep:"none" placeholder:"NAME=TEXT" help:"A request policy and what to call it; a preset's name or a policy's text alone; or scenario, the scenario's own. Give one for each column. Without any: all presets."`
	Seed      uint64   `default:"1" placeholder:"N" help:"Decides what is left to chance (${default}); all policies get the same."`
	Seeds     int      `default:"5" placeholder:"N" help:"Play each with so many seeds, from --seed on, and give the mean and a 95 % interval (${default})."`
	Only      []string `xor:"rows" complete:"measures" placeholder:"GROUP|MEASURE" help:"Show only this group of measures, such as latency, or this measure; may be given again."`
	All       bool     `xor:"rows" help:"Show every measure, not the chosen few."`
	JSON      bool     `xor:"form" help:"Print one JSON object, with everything that was measured."`
	Markdown  bool     `xor:"form" help:"Print the tables as Markdown."`
	Report    string   `type:"path" placeholder:"FILE" help:"Write a page of HTML with charts into this file, which needs nothing else."`
}

// Help is the command's long help.
func (*simCompareCmd) Help() string {
	return `Plays scenarios under several policies and prints a table for each, a column for each policy. All of them get the same seeds, and what happens by chance to a request's first datagrams happens to all alike, so what differs is the policies' doing. Several scenarios under a single policy are one table, with a line for each scenario.

    weir sim compare kill-oldest
    weir sim compare loss-1 loss-10 --seeds 20
    weir sim compare datacenter --policy default --policy 'quick=unit=2ms' --policy 'quicker=unit=1ms'
    weir sim compare overload --variants --policy scenario --only work
    weir sim compare healthy kill-oldest --report kill-oldest.html`
}

// Run compares.
func (c *simCompareCmd) Run(ctx context.Context, line *kong.Context, std *stdio) error {
	names, err := c.names()
	if err != nil {
		return usage(err)
	}
	plan, err := c.plan(names)
	if err != nil {
		return usage(err)
	}
	otherwise := simcompare.Choice{}
	if c.All {
		otherwise = simcompare.Every()
	}
	choice, err := onlyOr(otherwise, c.Only)
	if err != nil {
		return usage(err)
	}
	texts, err := sources(c.Report, names)
	if err != nil {
		return err
	}
	report, err := newReport(c.Report, names)
	if err != nil {
		return err
	}
	defer report.discard()
	comparisons, err := playPlan(ctx, std, plan)
	if err != nil {
		return err
	}
	if err := writeReport(report, line.Args, comparisons, texts); err != nil {
		return err
	}
	if c.JSON {
		return writeCompareJSON(std.out, comparisons)
	}
	return c.writeTables(std, comparisons, choice)
}

// writeTables prints what was compared, one below the other, or in one table if it is one policy.
func (c *simCompareCmd) writeTables(std *stdio, comparisons []simcompare.Comparison, choice simcompare.Choice) error {
	width := outputWidth(std)
	one := len(comparisons) > 1 && len(comparisons[0].Columns) == 1
	switch {
	case one && c.Markdown:
		return simcompare.WriteScenariosMarkdown(std.out, comparisons, choice)
	case one:
		return simcompare.WriteScenarios(std.out, comparisons, choice, width)
	}
	for i := range comparisons {
		if i > 0 {
			fmt.Fprintln(std.out)
		}
		write := func() error { return comparisons[i].WriteTable(std.out, choice, width) }
		if c.Markdown {
			write = func() error { return comparisons[i].WriteMarkdown(std.out, choice) }
		}
		if err := write(); err != nil {
			return err
		}
	}
	if c.Markdown {
		return nil
	}
	_, err := fmt.Fprintln(std.out, "\n"+strings.Join(simcompare.Wrap(simcompare.Legend, width), "\n"))
	return err
}

// names are the scenarios to be played, with their variants if those are wanted.
func (c *simCompareCmd) names() ([]string, error) {
	var names []string
	for _, name := range c.Scenarios {
		names = append(names, name)
		if !c.Variants {
			continue
		}
		variants, err := scenario.Variants(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(variants, name) {
			return nil, fmt.Errorf("--variants: %s is a variant and has none; name the scenario", name)
		}
		names = append(names, variants...)
	}
	return names, nil
}

// plan is what the arguments say is to be compared.
func (c *simCompareCmd) plan(names []string) (*simcompare.Plan, error) {
	plan := &simcompare.Plan{Policies: simcompare.Presets(), Seed: c.Seed, Seeds: c.Seeds}
	if len(c.Policy) > 0 {
		named, err := simcompare.ParseNamed(c.Policy)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		plan.Policies = named
	}
	for _, name := range names {
		s, err := scenario.Find(name)
		if err != nil {
			return nil, err
		}
		plan.Scenarios = append(plan.Scenarios, s)
	}
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	return plan, nil
}

// playPlan plays a plan and tells how far it is, as playWithProgress does.
func playPlan(ctx context.Context, std *stdio, plan *simcompare.Plan) ([]simcompare.Comparison, error) {
	teller := newProgressTeller(std, isTerminal(std.err), time.Now())
	defer teller.finish()
	return plan.Play(ctx, func(played, all time.Duration) { teller.tell(time.Now(), played, all) })
}

// outputWidth is COLUMNS if that is a sensible number, else the terminal's width.
func outputWidth(std *stdio) int {
	if n, err := strconv.Atoi(std.getenv("COLUMNS")); err == nil && n >= 40 {
		return n
	}
	if n := windowWidth(std.out); n > 0 {
		return n
	}
	return tableWidth
}

// compareJSON is what weir sim compare came to.
type compareJSON struct {
	Comparisons []comparisonJSON `json:"comparisons"` // in the order of scenarios
}

type comparisonJSON struct {
	Scenario string       `json:"scenario"`
	Purpose  string       `json:"purpose,omitempty"`
	Seed     string       `json:"seed"` // the first; many JSON readers lose digits of 64-bit numbers
	Policies []columnJSON `json:"policies"`
	Best     []bestJSON   `json:"best"`
}

type columnJSON struct {
	Name   string     `json:"name"`
	Policy string     `json:"policy"`
	Seeds  *sim.Seeds `json:"seeds"`
}

// bestJSON says which policies are marked for a scalar.
type bestJSON struct {
	Scalar   string   `json:"scalar"`
	Policies []string `json:"policies"`
}

func writeCompareJSON(w io.Writer, comparisons []simcompare.Comparison) error {
	all := compareJSON{Comparisons: []comparisonJSON{}}
	for i := range comparisons {
		c := &comparisons[i]
		j := comparisonJSON{
			Scenario: c.Scenario.Name, Purpose: c.Scenario.Purpose, Seed: strconv.FormatUint(c.Seed, 10), Best: []bestJSON{},
		}
		for _, column := range c.Columns {
			j.Policies = append(j.Policies, columnJSON{column.Name, column.Policy.String(), column.Seeds})
		}
		for _, row := range c.Rows(true) {
			best := bestJSON{Scalar: row.Name}
			for k, cell := range row.Cells {
				if cell.Best {
					best.Policies = append(best.Policies, c.Columns[k].Name)
				}
			}
			if best.Policies != nil {
				j.Best = append(j.Best, best)
			}
		}
		all.Comparisons = append(all.Comparisons, j)
	}
	return json.NewEncoder(w).Encode(all)
}
