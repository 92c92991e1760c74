package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
	"github.com/weirhq/weir/policy"
)

// spinCommand is the command of a child that keeps a processor busy until its standard input ends.
const spinCommand = "spin"

// The overloaded server has a quarter of one processor: a busy process is there, too, and has three times the
// server's weight by its niceness. So the generator, which has the other processors, can ask for twice what
// the server can, and replay.
const overloadNice = 5

// overloadWork is asked for when a server is overloaded.
var overloadWork = generator.Work{Resources: 8, Buckets: 8}

const (
	overloadFlows    = 16
	overloadInFlight = 64
	overloadTimes    = 2 // the most that the server can
)

// compareOverload measures what is decided in time when twice as much is asked for as the server can decide, by
// clients with the default policy, who replay what has no answer and give it up at the horizon; beside the
// most that the same server can decide.
func compareOverload(ctx context.Context, c *comparing) (ours, theirs []sample, err error) {
	all := processors()
	if len(all) < 2 {
		return nil, nil, fmt.Errorf("%w: the server needs a processor without the generator, on a system that can keep them apart", errSkipped)
	}
	server, rest := all[:1], all[1:]
	timeline, err := policy.Default().Compile()
	if err != nil {
		return nil, nil, err
	}
	target, err := startTarget(ctx, c.binary, place{processors: server, nice: overloadNice}, c.tenant)
	if err != nil {
		return nil, nil, err
	}
	defer target.end()
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	if _, err := target.family.Talk(os.Stderr, self, onArgs(place{processors: server}, self, spinCommand)...); err != nil {
		return nil, nil, err
	}
	if err := stayOn(rest); err != nil {
		return nil, nil, err
	}
	defer func() { _ = stayOn(all) }()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(len(rest)))

	cfg := generator.Config{
		Keys: []apikey.Key{c.tenant.key}, Targets: []netip.AddrPort{target.addr}, Flows: overloadFlows, NoBursts: true,
		Work: overloadWork, For: c.plan.Slice, WarmUp: max(c.plan.Slice/5, 300*time.Millisecond),
	}
	most := func() (sample, error) {
		closed := cfg
		closed.InFlight = overloadInFlight
		s, _, err := goodput(ctx, closed)
		return s, err
	}
	first, err := most()
	if err != nil {
		return nil, nil, err
	}
	cfg.Rate, cfg.Replays = overloadTimes*first.PerSecond, timeline
	return inTurns(c.plan.Groups, func() (sample, error) {
		s, r, err := goodput(ctx, cfg)
		// A request that leaves late has the less time left for its answer.
		if late := time.Duration(r.Lag.P99 * float64(time.Microsecond)); err == nil && (r.Skipped > 0 || late > timeline.Horizon()/4) {
			err = fmt.Errorf("the generator fell behind: it left %d requests out, and one in a hundred was sent %v late or more", r.Skipped, late)
		}
		return s, err
	}, most)
}

// goodput measures how many decisions come in time.
func goodput(ctx context.Context, cfg generator.Config) (sample, *generator.Result, error) {
	r, err := generator.Run(ctx, cfg)
	switch {
	case err != nil:
		return sample{}, &generator.Result{Lag: &generator.Quantiles{}}, err
	case r.Interrupted:
		return sample{}, r, context.Cause(ctx)
	case r.Wrong > 0 || r.Denied > 0:
		return sample{}, r, fmt.Errorf("%d answers were wrong, %d denied", r.Wrong, r.Denied)
	case r.Granted == 0:
		return sample{}, r, fmt.Errorf("nobody answered")
	}
	return sample{PerSecond: r.PerSecond, P50: r.Latency.P50, P99: r.Latency.P99, P999: r.Latency.P999}, r, nil
}

// spin is the child.
func spin(context.Context, []string) error {
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	for !over.Load() { // that is all
	}
	return nil
}
