package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	generator "github.com/weirhq/weir/internal/load"
	"github.com/weirhq/weir/wire"
)

// growthCommand measures latencies while a server's buckets come, expire, and come again.
const growthCommand = "growth"

// growthGate is the most that p99.9 may be, by the floor's.
const growthGate = 2

// growthLate is how late the sender may be at its p99.9, in microseconds. What fills the buckets has the same processors,
// and keeps it from them for 2 ms at times.
const growthLate = 5000

// growthBucket is what a bucket takes of a server's memory, in bytes.
const growthBucket = 86

// growthPlan is how that is done.
type growthPlan struct {
	Buckets int
	Fill    time.Duration // how long filling takes, and filling again
	Window  time.Duration // of the buckets
	Rate    float64       // of the requests that are timed
	Pairs   int           // of cycles, ours and the floor's
	JSON    bool          `json:"-"`

	Server []int // processors of the server; none if it shares all
}

// cycle is how long all of it takes: what was consumed last expires a window later, and is then consumed anew.
func (p *growthPlan) cycle() time.Duration { return 2*p.Fill + p.Window }

func parseGrowth(args []string) (growthPlan, error) {
	const most = 1 << 24 // that a key allows
	var p growthPlan
	f := flag.NewFlagSet(growthCommand, flag.ContinueOnError)
	f.IntVar(&p.Buckets, "buckets", 10_000_000, "buckets that live at the same time")
	f.DurationVar(&p.Fill, "fill", 14*time.Second, "how long it takes to consume from all of them")
	f.DurationVar(&p.Window, "window", 16*time.Second, "their window; longer than --fill, so that all live at the same time")
	f.Float64Var(&p.Rate, "rate", 2000, "requests a second that are timed")
	f.IntVar(&p.Pairs, "pairs", 3, "how often all of it is done")
	f.BoolVar(&p.JSON, "json", false, "print JSON")
	quick := f.Bool("quick", false, "a million buckets, in half a minute, whatever --buckets, --fill, --window and --pairs say")
	if err := readFlags(f, args); err != nil {
		return p, err
	}
	if *quick {
		p.Buckets, p.Fill, p.Window, p.Pairs = 1_000_000, 2*time.Second, 2500*time.Millisecond, 2
	}
	if all := processors(); len(all) > 1 {
		p.Server = all[:len(all)/2]
	}
	switch {
	case f.NArg() > 0:
		return p, fmt.Errorf("there is no command or argument %q", f.Arg(0))
	case p.Buckets < mostResources || p.Buckets > most:
		return p, fmt.Errorf("%d buckets are not from %d to %d", p.Buckets, mostResources, most)
	case p.Fill <= 0 || p.Window <= p.Fill || p.Window%time.Millisecond != 0 || p.Window > time.Hour:
		return p, errors.New("--fill is above 0, and --window longer, in whole milliseconds, and at most an hour")
	case !(p.Rate > 0) || p.Pairs < 1:
		return p, errors.New("--rate and --pairs are above 0")
	}
	return p, nil
}

// growthSide is what one subject came to. Times are in microseconds.
type growthSide struct {
	quantiles
	Late     float64 // p99.9 of how late the requests that were timed left
	Lost     uint64  // requests that were timed, without an answer
	Live     float64 // buckets, at the most
	Resident float64 // bytes, at the most
	Page     float64 `json:",omitempty"` // the longest that the system took to give a page of as much memory, before
}

// growthReport is what was found.
type growthReport struct {
	Machine     string
	Plan        growthPlan
	Ours, Floor growthSide
	Pairs       []float64          // p99.9, ours by the floor's, where what was timed left in time
	LeftOut     int                `json:",omitempty"` // pairs where it did not, or where memory was slow to be had
	Ratios      map[string]float64 `json:"ratios"`     // growth: the median of them
	Gate        float64
}

// growing is a measurement under way.
type growing struct {
	plan   growthPlan
	binary string
	tenant tenant
	report *growthReport
}

func growth(ctx context.Context, args []string) error {
	plan, err := parseGrowth(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	run := growing{plan: plan, report: &growthReport{Machine: machine(), Plan: plan, Ratios: map[string]float64{}, Gate: growthGate}}
	quotas := apikey.DefaultQuotas()
	quotas.RateBuckets = 1 << 24
	run.tenant.name = "bench"
	if run.tenant.key, err = apikey.New(apikey.AuthAES, 1, quotas, rand.Reader); err != nil {
		return err
	}
	if run.binary, err = buildWeir(ctx, dir); err != nil {
		return err
	}
	if len(plan.Server) > 0 {
		if err := stayOn(processors()[len(plan.Server):]); err != nil {
			return err
		}
	}
	for range mostTries * plan.Pairs {
		ours, err := run.ours(ctx)
		if err != nil {
			return err
		}
		floor, err := run.floor(ctx)
		if err != nil {
			return err
		}
		if run.report.take(ours, floor); len(run.report.Pairs) == plan.Pairs {
			break
		}
	}
	return run.report.print(os.Stdout)
}

// ours takes an r-server through a cycle.
func (g *growing) ours(ctx context.Context) (*growthSide, error) {
	page, err := slowestPage(g.plan.Buckets * growthBucket)
	if err != nil {
		return nil, err
	}
	s, err := startWeirOn(ctx, place{processors: g.plan.Server}, g.binary, g.tenant)
	if err != nil {
		return nil, err
	}
	defer s.end()
	side, err := g.through(ctx, s)
	if err != nil {
		return nil, err
	}
	side.Page = micros(int64(page))
	return side, nil
}

// floor takes the floor through the same.
func (g *growing) floor(ctx context.Context) (*growthSide, error) {
	s, err := startFloorOn(ctx, place{processors: g.plan.Server}, g.tenant, 0, 1)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return g.through(ctx, s)
}

// through takes a subject through the cycle, and times requests all the time.
func (g *growing) through(ctx context.Context, s *subject) (*growthSide, error) {
	fmt.Fprintf(os.Stderr, "%s: a cycle of %v begins\n", s.name, g.plan.cycle())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type timed struct {
		result *generator.Result
		err    error
	}
	done := make(chan timed, 1)
	go func() {
		r, err := generator.Run(ctx, generator.Config{
			Keys: []apikey.Key{g.tenant.key}, Targets: []netip.AddrPort{s.addr}, Flows: 16, NoBursts: true,
			Rate: g.plan.Rate, For: g.plan.cycle(), FromSend: true,
		})
		done <- timed{r, err}
	}()
	var side growthSide
	err := g.fillAndRefill(ctx, s, &side)
	if err != nil {
		stop()
	}
	got := <-done
	switch err := cmp.Or(err, got.err); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.name, err)
	case got.result.Interrupted:
		return nil, context.Cause(ctx)
	case got.result.Wrong > 0 || got.result.Denied > 0:
		return nil, fmt.Errorf("%s: %d answers were wrong, %d denied", s.name, got.result.Wrong, got.result.Denied)
	}
	side.quantiles, side.Late, side.Lost = quantilesOf(got.result.Latencies), got.result.Lag.P999, got.result.Lost+got.result.Skipped
	return &side, nil
}

// take adds a pair, unless what was timed left late in it, or memory was slow to be had: then the machine was held up.
func (r *growthReport) take(ours, floor *growthSide) {
	r.Ours.worst(ours)
	r.Floor.worst(floor)
	if ours.Late > growthLate || floor.Late > growthLate || ours.Page > growthLate {
		r.LeftOut++
		return
	}
	r.Pairs = append(r.Pairs, ours.P999/floor.P999)
	r.Ratios[growthCommand] = median(r.Pairs)
}

// worst takes in what another cycle came to: the larger of each.
func (s *growthSide) worst(of *growthSide) {
	s.quantiles = quantiles{max(s.P50, of.P50), max(s.P99, of.P99), max(s.P999, of.P999)}
	s.Late, s.Live, s.Resident, s.Page = max(s.Late, of.Late), max(s.Live, of.Live), max(s.Resident, of.Resident), max(s.Page, of.Page)
	s.Lost += of.Lost
}

// fillAndRefill consumes from all buckets, lets them expire, and does so again.
func (g *growing) fillAndRefill(ctx context.Context, s *subject, side *growthSide) error {
	start := time.Now()
	for _, at := range []time.Duration{0, g.plan.Fill + g.plan.Window} {
		if err := sleepUntil(ctx, start.Add(at)); err != nil {
			return err
		}
		if err := g.fill(ctx, s); err != nil {
			return err
		}
		if err := g.look(ctx, s, side); err != nil {
			return err
		}
	}
	return nil
}

func sleepUntil(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// look takes in what a subject has after it was filled.
func (g *growing) look(ctx context.Context, s *subject, side *growthSide) error {
	resident, err := s.resident()
	if err != nil {
		return err
	}
	side.Resident = max(side.Resident, resident)
	if s.target == nil {
		return nil
	}
	series, err := s.target.metrics(ctx)
	if err != nil {
		return err
	}
	live := sumOf(series, "weir_live_buckets")
	if enough := 0.99 * float64(g.plan.Buckets); live < enough {
		return fmt.Errorf("only %.0f buckets live, of %d that were asked for, and the system dropped %.0f datagrams: the machine is too slow; give --fill and --window more time",
			live, g.plan.Buckets, sumOf(series, "weir_kernel_drops_total"))
	}
	side.Live = max(side.Live, live)
	return nil
}

// fill consumes once from each bucket, in requests as large as they get, and returns when that is done.
func (g *growing) fill(ctx context.Context, s *subject) error {
	child, err := flood(s.family, job{
		Addr: s.addr.String(), Key: g.tenant.key.Encode(), Kind: filling, Rate: float64(g.plan.Buckets) / mostResources / g.plan.Fill.Seconds(),
		Buckets: uint64(g.plan.Buckets), Window: g.plan.Window,
	})
	if err != nil {
		return err
	}
	goOn := context.AfterFunc(ctx, child.End)
	_, _ = io.Copy(io.Discard, child) // until it has ended
	if goOn() {
		child.End()
	}
	return context.Cause(ctx)
}

// filling is no attack: it takes one of ten tokens of each of many buckets.
const filling = "filling"

// fillNext asks for the next buckets. The error is io.EOF when all were asked for.
func (a *attacker) fillNext() ([]byte, error) {
	const limit = 10
	from := a.number * mostResources
	if from >= a.job.Buckets {
		return nil, io.EOF
	}
	resources := a.resources[:min(mostResources, a.job.Buckets-from)]
	for i := range resources {
		var id ident.ID
		binary.LittleEndian.PutUint64(id[:], from+uint64(i))
		resources[i] = wire.Resource{Bucket: id, Window: uint32(a.job.Window.Milliseconds()), Rate: limit, Tokens: 1}
	}
	return a.request(resources, 300)
}

// print writes the report, and tells whether the figure is within its gate.
func (r *growthReport) print(w io.Writer) error {
	if r.Plan.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w, "%s\n%d buckets filled in %v, expired after %v, and filled again; %.0f requests a second timed meanwhile\n",
			r.Machine, r.Plan.Buckets, r.Plan.Fill, r.Plan.Window, r.Plan.Rate)
		for _, s := range []struct {
			name string
			*growthSide
		}{{"r-server", &r.Ours}, {"floor", &r.Floor}} {
			fmt.Fprintf(w, "%-9s p50 %.0f us, p99 %.0f us, p99.9 %.0f us; %d lost; sent late by %.0f us at p99.9; %.0f buckets live, %.0f MB resident\n",
				s.name, s.P50, s.P99, s.P999, s.Lost, s.Late, s.Live, s.Resident/1e6)
		}
		fmt.Fprintf(w, "memory    %.0f us for the slowest page of as much, taken just before\n", r.Ours.Page)
		fmt.Fprintf(w, "p99.9 by the floor's: %.2f of the pairs %.2f, gate %.1f; %d pairs were left out, as the sender was late or memory slow\n",
			r.Ratios[growthCommand], r.Pairs, r.Gate, r.LeftOut)
	}
	if len(r.Pairs) < r.Plan.Pairs {
		return fmt.Errorf("in %d of %d pairs the sender itself was up to %.1f ms late, or the system took up to %.1f ms to give a page of memory: the machine has other work, or its host has, and the figures judge nothing",
			r.LeftOut, r.LeftOut+len(r.Pairs), max(r.Ours.Late, r.Floor.Late)/1000, r.Ours.Page/1000)
	}
	if got := r.Ratios[growthCommand]; !(got <= r.Gate) {
		return fmt.Errorf("%w: p99.9 is %.2f of the floor's", errGate, got)
	}
	return nil
}
