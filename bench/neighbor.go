package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// gateNeighbor is the most that an attack may multiply another tenant's p99 by.
const gateNeighbor = 2.0

// mostLate is how late a sender may be at the quantile that is judged, in microseconds. If it is later, something
// else had the processors, and what was measured says nothing of the server.
const mostLate = 2000

// neighborPlan is how the measurement is made.
type neighborPlan struct {
	Rate   float64       // of the neighbor, requests a second
	Flows  int           // of the neighbor
	Share  float64       // of the server's measured maximum that an attack sends
	Slice  time.Duration // one measurement, alone or attacked
	Groups int           // alone, attacked, attacked, alone: two pairs each
	Server []int         // processors of the server; the others are the load's. None: all share all
	JSON   bool          `json:"-"`
	Only   string        `json:",omitempty"`
}

// parseNeighbor reads the flags.
func parseNeighbor(args []string) (neighborPlan, error) {
	var p neighborPlan
	f := flag.NewFlagSet("neighbor", flag.ContinueOnError)
	f.Float64Var(&p.Rate, "rate", 2000, "requests a second of the neighbor")
	f.IntVar(&p.Flows, "flows", 16, "sockets of the neighbor")
	f.Float64Var(&p.Share, "share", 0.5, "what an attack sends, as a share of the most that the server took of it; 0 for a flood")
	f.DurationVar(&p.Slice, "slice", 2*time.Second, "length of one measurement")
	f.IntVar(&p.Groups, "groups", 5, "groups of two pairs")
	f.StringVar(&p.Only, "attack", "", "only this attack")
	f.BoolVar(&p.JSON, "json", false, "print JSON")
	shared := f.Bool("shared", false, "let server, attacker and neighbor share all processors")
	quick := f.Bool("quick", false, "in less than a minute, and rough, whatever --slice and --groups say")
	if err := readFlags(f, args); err != nil {
		return p, err
	}
	if *quick {
		p.Slice, p.Groups = 500*time.Millisecond, 2
	}
	if f.NArg() > 0 {
		return p, fmt.Errorf("there is no command or argument %q", f.Arg(0))
	}
	if !(p.Rate > 0) || p.Flows < 1 || !(p.Share >= 0) || p.Slice <= 0 || p.Groups < 1 {
		return p, fmt.Errorf("the rate, the flows, the slice and the groups are above 0, and the share is not below")
	}
	if all := processors(); len(all) > 1 && !*shared {
		p.Server = all[:len(all)/2]
	}
	known := p.Only == ""
	for i := range kinds {
		known = known || p.Only == kinds[i].name
	}
	if !known {
		return p, fmt.Errorf("there is no attack %q; without --attack all are measured", p.Only)
	}
	return p, nil
}

// neighborRun is a measurement under way.
type neighborRun struct {
	plan    neighborPlan
	target  *target
	tenants [3]tenant // the neighbor, the attacker, and one with a max_rate
}

// neighbor measures a tenant's latencies alone, and under each attack of another.
func neighbor(ctx context.Context, args []string) error {
	plan, err := parseNeighbor(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	mostPriority()
	run := &neighborRun{plan: plan}
	if len(plan.Server) > 0 {
		if err := stayOn(processors()[len(plan.Server):]); err != nil {
			return err
		}
	}
	for i, name := range []string{"neighbor", "attacker", "limited"} {
		rate := 0
		if name == "limited" {
			rate = 1000
		}
		if run.tenants[i], err = newTenant(name, uint64(i+1), rate); err != nil {
			return err
		}
	}
	binary, err := buildWeir(ctx, dir)
	if err != nil {
		return err
	}
	if run.target, err = startTarget(ctx, binary, place{processors: plan.Server}, run.tenants[:]...); err != nil {
		return err
	}
	defer run.target.end()
	report := neighborReport{Machine: machine(), Plan: plan, Gate: gateNeighbor, lines: linesTo(plan.JSON)}
	report.head()
	if _, err := run.ask(ctx); err != nil { // warm
		return err
	}
	for i := range kinds {
		if plan.Only != "" && plan.Only != kinds[i].name {
			continue
		}
		row, err := run.under(ctx, kinds[i].name, kinds[i].limited)
		if err != nil {
			return fmt.Errorf("under %s: %w", kinds[i].name, err)
		}
		report.add(row)
	}
	return report.end(os.Stdout)
}

// under measures one attack.
func (r *neighborRun) under(ctx context.Context, kind string, limited bool) (neighborRow, error) {
	row := neighborRow{Attack: kind}
	var err error
	if row.Most, err = r.most(ctx, kind, limited); err != nil {
		return row, err
	}
	row.Rate = row.Most * r.plan.Share
	for pair := 0; pair < mostTries*r.plan.pairs() && len(row.Pairs) < r.plan.pairs(); pair++ {
		var slices [2]*generator.Result // alone, attacked
		order := [2]int{0, 1}
		if pair%2 == 1 {
			order = [2]int{1, 0}
		}
		for _, which := range order {
			if slices[which], err = r.slice(ctx, &row, kind, limited, which == 1); err != nil {
				return row, err
			}
		}
		row.take(slices[0], slices[1])
	}
	row.finish(r.plan.pairs())
	return row, nil
}

// mostTries is how often as many pairs are measured as are wanted, at the most.
const mostTries = 2

// pairs is how many are wanted.
func (p *neighborPlan) pairs() int { return 2 * p.Groups }

// slice measures once, alone or attacked. The attack begins before and ends after.
func (r *neighborRun) slice(ctx context.Context, row *neighborRow, kind string, limited, attacked bool) (*generator.Result, error) {
	const settle = 300 * time.Millisecond
	if !attacked {
		time.Sleep(settle)
		return r.ask(ctx)
	}
	stop, err := r.attack(kind, limited, row.Rate)
	if err != nil {
		return nil, err
	}
	defer stop()
	time.Sleep(settle)
	before, err := r.target.figures(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	slice, err := r.ask(ctx)
	took := time.Since(start).Seconds()
	after, ferr := r.target.figures(ctx)
	if err == nil {
		err = ferr
	}
	got := after.since(before)
	row.Took, row.Cores = got.datagrams/took-r.plan.Rate, got.cpu/took
	row.Dropped += got.lost
	return slice, err
}

// ask puts the neighbor's load on the server once. A latency is from when a request was sent to when the
// system took in its answer: how late the sender was, in which the server has no part, is told apart.
func (r *neighborRun) ask(ctx context.Context) (*generator.Result, error) {
	const buckets = 100
	got, err := generator.Run(ctx, generator.Config{
		NoBursts: true,
		Keys:     []apikey.Key{r.tenants[0].key}, Targets: []netip.AddrPort{r.target.addr},
		Flows: r.plan.Flows, Rate: r.plan.Rate, For: r.plan.Slice, Work: generator.Work{Buckets: buckets}, FromSend: true,
	})
	switch {
	case err != nil:
		return nil, err
	case got.Interrupted:
		return nil, context.Cause(ctx)
	case got.Wrong > 0 || got.Denied > 0:
		return nil, fmt.Errorf("%d answers were wrong, %d denied", got.Wrong, got.Denied)
	case got.Latency.N == 0:
		return nil, errors.New("nothing was asked in a slice; make it longer")
	}
	return got, nil
}

// most measures how many datagrams of an attack the server takes in a second, when it is sent as many
// as can be.
func (r *neighborRun) most(ctx context.Context, kind string, limited bool) (float64, error) {
	stop, err := r.attack(kind, limited, 0)
	if err != nil {
		return 0, err
	}
	defer stop()
	time.Sleep(200 * time.Millisecond)
	before, err := r.target.figures(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	time.Sleep(max(r.plan.Slice, time.Second))
	after, err := r.target.figures(ctx)
	return after.since(before).datagrams / time.Since(start).Seconds(), err
}

// attack starts a child that attacks until it is stopped.
func (r *neighborRun) attack(kind string, limited bool, rate float64) (stop func(), err error) {
	attacker := r.tenants[1]
	if limited {
		attacker = r.tenants[2]
	}
	return r.target.flood(job{Addr: r.target.addr.String(), Key: attacker.key.Encode(), Kind: kind, Rate: rate})
}
