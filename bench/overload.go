package main

import (
	"cmp"
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
	"github.com/weirhq/weir/internal/precise"
	"github.com/weirhq/weir/policy"
)

// spinCommand is the command of a child that keeps a processor busy but for a part of the time, until its standard
// input ends.
const spinCommand = "spin"

// The overloaded server has what a busy process leaves of one processor: overloadShare of each spinPeriod. So the
// generator, which has the other processors, can ask for twice what the server can, and replay. The period is
// short beside the horizon. The scheduler's own, with a niceness, is not: a server that is away for 10 ms at a time is
// measured with a queue that is not of its making.
const (
	spinPeriod    = time.Millisecond
	overloadShare = 150 * time.Microsecond
)

// nicest is beyond what niceness can be: a process that has what others leave, and that whoever wakes up beside it
// interrupts at once.
const nicest = 20

// overloadWork is asked for when a server is overloaded.
var overloadWork = generator.Work{Resources: 8, Buckets: 8}

// In the closed loop each socket has one request in flight, since in the open loop each request leaves from another
// socket than the one before. Where several of a socket are answered together they leave as a burst, and the most that a
// server can is more than it can of such requests.
const (
	overloadFlows    = 64
	overloadInFlight = overloadFlows
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
	target, err := startTarget(ctx, c.binary, place{processors: server, nice: nicest}, c.tenant)
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

	cfg := generator.Config{
		Keys: []apikey.Key{c.tenant.key}, Targets: []netip.AddrPort{target.addr}, Flows: overloadFlows, NoBursts: true,
		Work: overloadWork, For: c.plan.Slice, WarmUp: max(c.plan.Slice/5, 300*time.Millisecond),
	}
	highest := 0.0 // of what was decided at the most so far
	most := func() (sample, error) {
		closed := cfg
		closed.InFlight = overloadInFlight
		s, _, err := goodput(ctx, closed)
		highest = max(highest, s.PerSecond)
		return s, err
	}
	for range 3 { // it differs from one time to another, and what is asked for goes by the highest
		if _, err := most(); err != nil {
			return nil, nil, err
		}
	}
	open := func() (overloadSlice, error) {
		c := cfg
		c.Rate, c.Replays = overloadTimes*highest, timeline
		s, r, err := goodput(ctx, c)
		return overloadSlice{s, c.Rate, keptUp(r, timeline)}, err
	}
	return overloadPairs(2*c.plan.Groups, open, most)
}

// overloadSlice is one measurement of an overloaded server.
type overloadSlice struct {
	sample
	rate   float64 // what was to be asked for, a second
	behind error   // why less was
}

// overloadPairs measures A B B A, and leaves out the pairs in which a server was not asked for as much as it was to be.
func overloadPairs(wanted int, open func() (overloadSlice, error), most func() (sample, error)) (ours, theirs []sample, err error) {
	var left error
	for pair := 0; pair < mostTries*wanted && len(ours) < wanted; pair++ {
		var slice overloadSlice
		var can sample
		for i := range 2 {
			if i == pair%2 {
				slice, err = open()
			} else {
				can, err = most()
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if err := cmp.Or(slice.behind, overloaded(slice.rate, can.PerSecond)); err != nil {
			left = err
			continue
		}
		ours, theirs = append(ours, slice.sample), append(theirs, can)
	}
	if len(ours) < wanted {
		return nil, nil, fmt.Errorf("only %d of %d pairs count; of the last of the others: %w", len(ours), mostTries*wanted, left)
	}
	return ours, theirs, nil
}

// keptUp says what a generator with a policy did not ask for, or asked for too late: then less was asked of the server
// than it says, or there was less time left for answers.
func keptUp(r *generator.Result, line *policy.Timeline) error {
	late := time.Duration(0)
	if r.Lag != nil { // else nothing was sent
		late = time.Duration(r.Lag.P99 * float64(time.Microsecond))
	}
	owed := r.Lost * uint64(line.Rounds()-1) // what had no answer at all was replayed in every round
	switch {
	case r.Skipped > 0 || late > line.Horizon()/4:
		return fmt.Errorf("the generator fell behind: it left %d requests out, and one in a hundred was sent %v late or more", r.Skipped, late)
	case r.Unsent > 0:
		return fmt.Errorf("the system did not take %d of the generator's datagrams; the first: %s", r.Unsent, r.Error)
	case r.Replays < owed:
		return fmt.Errorf("the generator fell behind: it made %d replays, and %d requests that were lost have %d", r.Replays, r.Lost, owed)
	}
	return nil
}

// overloaded says if a server turned out to be able to so much that its load was less than it was to be.
func overloaded(rate, can float64) error {
	const enough = 0.9
	if rate < enough*overloadTimes*can {
		return fmt.Errorf("%.0f requests a second are only %.2f times the %.0f that the server was then seen to decide; let nothing else run on the machine", rate, rate/can, can)
	}
	return nil
}

// goodput measures how many decisions come in time.
func goodput(ctx context.Context, cfg generator.Config) (sample, *generator.Result, error) {
	r, err := generator.Run(ctx, cfg)
	switch {
	case err != nil:
		return sample{}, &generator.Result{}, err
	case r.Interrupted:
		return sample{}, r, context.Cause(ctx)
	case r.Wrong > 0 || r.Denied > 0:
		return sample{}, r, fmt.Errorf("%d answers were wrong %v, %d denied", r.Wrong, r.Wrongs, r.Denied)
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
	runtime.LockOSThread()
	for at := time.Now(); !over.Load(); at = at.Add(spinPeriod) {
		if time.Since(at) > spinPeriod {
			at = time.Now() // what others of the machine took is not made up for
		}
		for time.Since(at) < spinPeriod-overloadShare { // that is all
		}
		precise.SleepUntil(at.Add(spinPeriod))
	}
	return nil
}
