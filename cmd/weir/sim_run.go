package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/internal/simrun"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

// maxSeeds bounds the runs of one command, whose measures are all kept.
const maxSeeds = 10_000

type simRunCmd struct {
	Scenario string   `arg:"" complete:"scenarios" placeholder:"SCENARIO" help:"A name from weir sim list, or a file; /VARIANT behind it is one of its variants."`
	Only     []string `complete:"measures" placeholder:"GROUP|MEASURE" help:"Print only this group of measures, such as latency, or this measure; may be given again."`
	Seed     uint64   `default:"1" placeholder:"N" help:"Decides what is left to chance (${default}): the same seed gives the same run, on every machine."`
	Seeds    int      `default:"1" placeholder:"N" help:"Play it with so many seeds, from --seed on, and give the mean and a 95 % interval (${default})."`
	Policy   string   `placeholder:"TEXT" help:"Request policy instead of the scenario's, as in weir acquire."`
	Log      string   `type:"path" placeholder:"FILE" help:"Write the event log into this file; only with one seed."`
	Report   string   `type:"path" placeholder:"FILE" help:"Write a page of HTML with charts into this file, which needs nothing else."`
	JSON     bool     `help:"Print one JSON object, with everything that was measured."`
}

// Help is the command's long help.
func (*simRunCmd) Help() string {
	return `Plays a scenario in virtual time: the product's own client core and decision engine, over a simulated network. Nothing is sent, and nothing waits: twenty seconds of a scenario take a fraction of one.

docs/scenarios.md tells how a scenario is written, docs/evaluator.md what each measure is.

    weir sim run kill-oldest
    weir sim run kill-oldest --only decisions --only latency_p99_ms
    weir sim run kill-oldest --policy 'default unit=5ms' --seeds 20
    weir sim run overload/min-off --json
    weir sim run ./shop.yaml --log events.txt`
}

// Run plays the scenario and prints what it came to.
func (c *simRunCmd) Run(ctx context.Context, line *kong.Context, std *stdio) (err error) {
	s, err := c.scenario()
	if err != nil {
		return usage(err)
	}
	choice, err := onlyOr(simcompare.Every(), c.Only)
	if err != nil {
		return usage(err)
	}
	texts, err := sources(c.Report, []string{c.Scenario})
	if err != nil {
		return err
	}
	report, err := newReport(c.Report, []string{c.Scenario})
	if err != nil {
		return err
	}
	defer report.discard()
	jobs := make([]simrun.Job, c.Seeds)
	for i := range jobs {
		jobs[i] = simrun.Job{Scenario: s, Seed: c.Seed + uint64(i)}
	}
	if c.Log != "" {
		if err := notOver(c.Log, filesOf([]string{c.Scenario})...); err != nil {
			return usage(fmt.Errorf("--log: %w", err))
		}
		file, err := os.Create(c.Log)
		if err != nil {
			return err
		}
		log := bufio.NewWriterSize(file, 1<<16)
		jobs[0].Log = log
		defer func() { err = errors.Join(err, log.Flush(), file.Close()) }()
	}
	results, err := playWithProgress(ctx, std, jobs)
	if err != nil {
		return err
	}
	runs := make([]*sim.Measures, len(results))
	for i := range results {
		runs[i] = results[i].Measures
	}
	name := "policy"
	if c.Policy == "" {
		name = "the scenario's policy"
	}
	comparison := simcompare.Comparison{
		Scenario: s, Seed: c.Seed, Seeds: c.Seeds, Columns: []simcompare.Column{simcompare.NewColumn(name, s.Policy, runs)},
	}
	if err := writeReport(report, line.Args, []simcompare.Comparison{comparison}, texts); err != nil {
		return err
	}
	if c.JSON {
		return writeSimJSON(std.out, s, c.Seed, runs)
	}
	if err := writeRunHead(std.out, c.Scenario, &comparison, outputWidth(std)); err != nil {
		return err
	}
	return comparison.WriteList(std.out, choice, outputWidth(std))
}

// onlyOr is what --only chooses, or what is shown without it.
func onlyOr(otherwise simcompare.Choice, only []string) (simcompare.Choice, error) {
	if len(only) == 0 {
		return otherwise, nil
	}
	choice, err := simcompare.Only(only)
	if err != nil {
		return choice, fmt.Errorf("--only: %w", err)
	}
	return choice, nil
}

// scenario is what the arguments say is to be played.
func (c *simRunCmd) scenario() (*sim.Scenario, error) {
	switch {
	case c.Seeds < 1 || c.Seeds > maxSeeds:
		return nil, fmt.Errorf("--seeds: give 1 to %d", maxSeeds)
	case c.Seed > math.MaxUint64-maxSeeds:
		return nil, fmt.Errorf("--seed: give at most %d", uint64(math.MaxUint64-maxSeeds))
	case c.Log != "" && c.Seeds > 1:
		return nil, errors.New("--log is of one run; leave --seeds out, and choose the run by --seed")
	}
	s, err := scenario.Find(c.Scenario)
	if err != nil || c.Policy == "" {
		return s, err
	}
	p, err := policy.Parse(c.Policy)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	changed := *s
	changed.Policy = p
	if err := changed.Validate(); err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	return &changed, nil
}
