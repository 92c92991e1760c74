package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/internal/simreport"
	"github.com/weirhq/weir/internal/simtune"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

type tuneCmd struct {
	RTT        string        `name:"rtt" required:"" placeholder:"FILE" help:"Round trips: the file of weir measure (.hlog), a list (.txt), or a distribution such as '0.2ms' or 'lognormal 30ms 36ms'."`
	Loss       string        `default:"0%" placeholder:"P" help:"Chance that a datagram is lost, each way (${default}): half of what weir measure counts as lost."`
	Objective  string        `default:"balanced" placeholder:"NAME" help:"What weighs most (${default}): balanced, latency, availability, correctness or datagrams."`
	Servers    int           `default:"3" placeholder:"N" help:"How many servers there are (${default}), 2 to 9."`
	MaxHorizon time.Duration `default:"300ms" placeholder:"DURATION" help:"Longest horizon that is tried (${default}): at most the key's quota dedup_ttl."`
	Seed       uint64        `default:"1" placeholder:"N" help:"Decides what is left to chance (${default}): the same seed gives the same output, on any number of processors."`
	Quick      bool          `help:"Try fewer policies with fewer seeds, in a quarter of the time."`
	Report     string        `type:"path" placeholder:"FILE" help:"Write a page of HTML with the Pareto front into this file, which needs nothing else."`
	JSON       bool          `xor:"form" help:"Print one JSON object."`
	Markdown   bool          `xor:"form" help:"Print the table as Markdown."`
}

// Help is the command's long help.
func (*tuneCmd) Help() string {
	return `Searches the request policy that suits a network. Candidates are simulated over round trips and losses like yours, in health, with the oldest server killed, slow or cut off from some clients, with more loss, and with everything late. What is found is confirmed with seeds that took no part in finding it, and compared with the default. If nothing beats that, it says so.

docs/tuning.md tells what is weighed, and how. Nothing is sent.

    weir measure --zone rl.example.com --for 10m -o rtt.hlog
    weir tune --rtt rtt.hlog --loss 0.1%
    weir tune --rtt 'lognormal 30ms 36ms' --objective latency --report tuned.html
    weir tune --rtt 0.2ms --quick`
}

// Run searches and prints what it came to.
func (c *tuneCmd) Run(ctx context.Context, line *kong.Context, std *stdio) error {
	plan, scenarios, err := c.plan()
	if err != nil {
		return usage(err)
	}
	read, _, _ := strings.Cut(c.RTT, " ")
	if err := notOver(c.Report, read); err != nil {
		return usage(fmt.Errorf("--report: %w", err))
	}
	// A file that cannot be written is better known now than in two minutes.
	report, err := newOutput(c.Report, true)
	if err != nil {
		return err
	}
	defer report.discard()
	result, err := search(ctx, std, plan, scenarios)
	if err != nil {
		return err
	}
	if c.Report != "" {
		page := &simreport.TunePage{Command: commandLine(line.Args), Version: thisVersion(), Network: c.network(), Scenarios: scenarios.All, Result: result}
		if err := errors.Join(simreport.WriteTune(report, page), report.keep()); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return writeTuneJSON(std.out, c, result)
	case c.Markdown:
		return result.WriteMarkdown(std.out)
	}
	return result.WriteTable(std.out)
}

// network says in words what is tuned for.
func (c *tuneCmd) network() string {
	return fmt.Sprintf("%d servers, round trips %s, loss %s each way, horizon at most %v", c.Servers, c.RTT, c.Loss, c.MaxHorizon)
}

// search searches and tells how far it is, if it takes long.
func search(ctx context.Context, std *stdio, plan simtune.Plan, scenarios *simtune.Scenarios) (*simtune.Result, error) {
	teller := newProgressTeller(std, isTerminal(std.err), time.Now())
	defer teller.finish()
	all := scenarios.Time() * time.Duration(plan.Budget.Trials())
	play := scenarios.Play(0, func(played time.Duration) { teller.tell(time.Now(), min(played, all), all) })
	return simtune.Search(ctx, plan, play)
}

// plan is what the flags say is to be searched, and over which scenarios.
func (c *tuneCmd) plan() (simtune.Plan, *simtune.Scenarios, error) {
	objective, network, err := c.parse()
	if err != nil {
		return simtune.Plan{}, nil, err
	}
	scenarios, err := simtune.NewScenarios(network)
	if err != nil {
		return simtune.Plan{}, nil, err
	}
	budget := simtune.Thorough
	if c.Quick {
		budget = simtune.Quick
	}
	return simtune.Plan{
		Objective: objective, Scenarios: scenarios.Names(), Weights: scenarios.Weights, Fits: scenarios.Fits, Seed: c.Seed, Budget: budget,
	}, scenarios, nil
}

// parse reads the flags.
func (c *tuneCmd) parse() (o simtune.Objective, n simtune.Network, err error) {
	if c.Seed > math.MaxUint64-maxSeeds {
		return o, n, fmt.Errorf("--seed: give at most %d", uint64(math.MaxUint64-maxSeeds))
	}
	if o, err = simtune.FindObjective(c.Objective); err != nil {
		return o, n, fmt.Errorf("--objective: %w", err)
	}
	n = simtune.Network{Servers: c.Servers, MaxHorizon: c.MaxHorizon}
	if n.RTT, err = readRTT(c.RTT); err != nil {
		return o, n, fmt.Errorf("--rtt: %w", err)
	}
	if n.Loss, err = parseLoss(c.Loss); err != nil {
		return o, n, fmt.Errorf("--loss: %w", err)
	}
	return o, n, nil
}

// readRTT reads round trips from a file, if it is one by its name, or a distribution.
func readRTT(text string) (sim.Dist, error) {
	name, rest, _ := strings.Cut(text, " ")
	if ending := filepath.Ext(name); ending != ".hlog" && ending != ".txt" {
		d, err := sim.ParseDist(strings.TrimPrefix(text, "constant "))
		if err != nil {
			return d, fmt.Errorf("%s, or the name of a file that ends in .hlog or .txt", strings.TrimPrefix(err.Error(), "sim: "))
		}
		return d, nil
	}
	if strings.HasSuffix(name, ".hlog") {
		rest = strings.TrimSpace(rest + " whole")
	}
	return scenario.Dist(strings.TrimSpace("file "+name+" "+rest), scenario.ReadData)
}

// parseLoss reads a percentage.
func parseLoss(text string) (sim.PerMillion, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !strings.HasSuffix(text, "%") || !(v >= 0 && v <= 50) {
		return 0, fmt.Errorf("%q is no percentage from 0%% to 50%%, such as 0.5%%", text)
	}
	return sim.PerMillion(math.Round(v * 1e4)), nil
}
