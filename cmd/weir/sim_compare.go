package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

// tableWidth is how long lines of the tables are where there is no terminal.
const tableWidth = 120

type simCompareCmd struct {
	Scenarios []string `arg:"" name:"scenario" placeholder:"SCENARIO" help:"Names from weir sim list, or files; /VARIANT behind one is one of its variants."`
	Policy    []string `sep:"none" placeholder:"NAME=TEXT" help:"A request policy and what to call it; a preset's name or a policy's text alone; or scenario, the scenario's own. Give one for each column. Without any: all presets."`
	Seed      uint64   `default:"1" placeholder:"N" help:"Decides what is left to chance (${default}); all policies get the same."`
	Seeds     int      `default:"5" placeholder:"N" help:"Play each with so many seeds, from --seed on, and give the mean and a 95 % interval (${default})."`
	All       bool     `help:"Show every measure, not the chosen few."`
	JSON      bool     `xor:"form" help:"Print one JSON object, with everything that was measured."`
	Markdown  bool     `xor:"form" help:"Print the tables as Markdown."`
	Report    string   `type:"path" placeholder:"FILE" help:"Write a page of HTML with charts into this file, which needs nothing else."`
}

// Help is the command's long help.
func (*simCompareCmd) Help() string {
	return `Plays scenarios under several policies and prints a table for each, a column for each policy. All of them get the same seeds, and what happens by chance to a request's first datagrams happens to all alike, so what differs is the policies' doing.

    weir sim compare kill-oldest
    weir sim compare loss-1 loss-10 --seeds 20
    weir sim compare datacenter --policy default --policy 'quick=unit=2ms' --policy 'quicker=unit=1ms'
    weir sim compare healthy kill-oldest --report kill-oldest.html`
}

// Run compares.
func (c *simCompareCmd) Run(ctx context.Context, line *kong.Context, std *stdio) error {
	plan, err := c.plan()
	if err != nil {
		return usage(err)
	}
	texts, err := sources(c.Report, c.Scenarios)
	if err != nil {
		return err
	}
	comparisons, err := playPlan(ctx, std, plan)
	if err != nil {
		return err
	}
	if c.Report != "" {
		if err := writeReport(c.Report, line.Args, comparisons, texts); err != nil {
			return err
		}
	}
	if c.JSON {
		return writeCompareJSON(std.out, comparisons)
	}
	for i := range comparisons {
		if i > 0 {
			fmt.Fprintln(std.out)
		}
		if c.Markdown {
			err = comparisons[i].WriteMarkdown(std.out, c.All)
		} else {
			err = comparisons[i].WriteTable(std.out, c.All, outputWidth(std))
		}
		if err != nil {
			return err
		}
	}
	if !c.Markdown {
		_, err = fmt.Fprintln(std.out, "\n"+simcompare.Legend)
	}
	return err
}

// plan is what the arguments say is to be compared.
func (c *simCompareCmd) plan() (*simcompare.Plan, error) {
	plan := &simcompare.Plan{Policies: simcompare.Presets(), Seed: c.Seed, Seeds: c.Seeds}
	if len(c.Policy) > 0 {
		named, err := simcompare.ParseNamed(c.Policy)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		plan.Policies = named
	}
	for _, name := range c.Scenarios {
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
