package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/apikey"
	generator "github.com/weirhq/weir/internal/load"
)

// workersCommand measures what a server's workers do to each other.
const workersCommand = "workers"

// What the figures of workers may be.
const (
	lockGate  = 0.05 // of the workers' time, waiting for the lock of a tenant
	shareGate = 1.2  // of the mean: the load of the busiest worker, after steering
	uneven    = 1.25 // the least that it is before, so that there is something to even out
)

// flowsEach is how many flows each worker has on average.
const flowsEach = 16

type workersPlan struct {
	Lock, Steering time.Duration // how long each is measured
	Tries          int           // to find flows that the system spread unevenly
	JSON           bool          `json:"-"`
}

// workersReport is what was found.
type workersReport struct {
	Machine  string
	Plan     workersPlan
	Workers  int
	Lock     lockFound
	Steering steeringFound
}

// lockFound is how long workers waited for one tenant's lock, all hammering that tenant.
type lockFound struct {
	PerSecond float64 // decisions
	Share     float64 // of the workers' time
	OfCPU     float64 // of the processor time of the server
	Gate      float64
}

// steeringFound is how an uneven load became even.
type steeringFound struct {
	Flows  int
	Before float64   // the busiest worker's load by the mean, at first
	After  float64   // in the last quarter
	Shares []float64 // twice a second
	Asked  float64   // answers that asked a flow to move
	Late   float64   // of these, in the last quarter
	Active bool      // at the end
	Gate   float64
}

func parseWorkers(args []string) (workersPlan, error) {
	var p workersPlan
	f := flag.NewFlagSet(workersCommand, flag.ContinueOnError)
	f.DurationVar(&p.Lock, "lock", 10*time.Second, "how long waiting for locks is measured")
	f.DurationVar(&p.Steering, "steering", 16*time.Second, "how long steering is measured")
	f.IntVar(&p.Tries, "tries", 100, "tries to find flows that the system spread unevenly")
	f.BoolVar(&p.JSON, "json", false, "print JSON")
	quick := f.Bool("quick", false, "in half a minute, and rough, whatever --lock and --steering say")
	if err := readFlags(f, args); err != nil {
		return p, err
	}
	if *quick {
		p.Lock, p.Steering = 2*time.Second, 12*time.Second
	}
	switch {
	case f.NArg() > 0:
		return p, fmt.Errorf("there is no command or argument %q", f.Arg(0))
	case p.Lock <= 0 || p.Steering < 4*time.Second || p.Tries < 1:
		return p, errors.New("--lock and --tries are above 0, and --steering is at least 4s")
	}
	return p, nil
}

func workers(ctx context.Context, args []string) error {
	plan, err := parseWorkers(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tenant, err := newTenant("bench", 1, 0)
	if err != nil {
		return err
	}
	binary, err := buildWeir(ctx, dir)
	if err != nil {
		return err
	}
	server, err := startTarget(ctx, binary, place{}, tenant)
	if err != nil {
		return err
	}
	defer server.end()
	report := workersReport{Machine: machine(), Plan: plan, Workers: runtime.NumCPU()}
	if report.Workers < 2 {
		return errors.New("one processor has one worker, which waits for none")
	}
	if report.Lock, err = measureLock(ctx, server, tenant, plan.Lock, report.Workers); err != nil {
		return fmt.Errorf("the lock of a tenant: %w", err)
	}
	if report.Steering, err = measureSteering(ctx, server, tenant, plan, report.Workers); err != nil {
		return fmt.Errorf("steering: %w", err)
	}
	return report.print()
}

// measureLock has all workers hammer one tenant, and one bucket of it.
func measureLock(ctx context.Context, t *target, of tenant, span time.Duration, workers int) (lockFound, error) {
	const flows = 64
	before, err := t.metrics(ctx)
	if err != nil {
		return lockFound{}, err
	}
	began := time.Now()
	r, err := generator.Run(ctx, generator.Config{
		Keys: []apikey.Key{of.key}, Targets: []netip.AddrPort{t.addr}, Flows: flows, InFlight: flows, NoBursts: true, For: span,
	})
	switch {
	case err != nil:
		return lockFound{}, err
	case r.Interrupted:
		return lockFound{}, context.Cause(ctx)
	case r.Granted == 0:
		return lockFound{}, errors.New("nobody answered")
	}
	took := time.Since(began).Seconds()
	after, err := t.metrics(ctx)
	if err != nil {
		return lockFound{}, err
	}
	const wait, busy = "go_sync_mutex_wait_total_seconds_total", "process_cpu_seconds_total"
	if _, ok := after[wait]; !ok {
		return lockFound{}, errors.New("the server does not tell how long it waited")
	}
	waited := after[wait] - before[wait]
	return lockFound{
		PerSecond: r.PerSecond, Share: waited / (took * float64(workers)), OfCPU: waited / (after[busy] - before[busy]), Gate: lockGate,
	}, nil
}

// errEven says that the system spread the flows evenly enough.
var errEven = errors.New("the flows were spread evenly")

// measureSteering has clients with fresh ports come until they are spread unevenly, and watches what becomes
// of it.
func measureSteering(ctx context.Context, t *target, of tenant, plan workersPlan, workers int) (found steeringFound, err error) {
	for range plan.Tries {
		if found, err = trySteering(ctx, t, of, plan.Steering, flowsEach*workers); !errors.Is(err, errEven) {
			return found, err
		}
	}
	return found, fmt.Errorf("%w, %d times", err, plan.Tries)
}

// look is how often the workers' loads are looked at.
const look = 500 * time.Millisecond

func trySteering(ctx context.Context, t *target, of tenant, span time.Duration, flows int) (steeringFound, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	var load sync.WaitGroup
	load.Go(func() {
		const each = 2 // requests of a flow in flight
		_, err := generator.Run(ctx, generator.Config{
			Keys: []apikey.Key{of.key}, Targets: []netip.AddrPort{t.addr}, Flows: flows, InFlight: each * flows, NoBursts: true,
			Steer: true, For: span + time.Minute,
		})
		ended <- err
	})
	found, err := watchSteering(ctx, t, span, ended)
	found.Flows, found.Gate = flows, shareGate
	stop()
	load.Wait()
	return found, err
}

// watchSteering looks at the workers' loads until the time is over, or the load ends, which is an error.
func watchSteering(ctx context.Context, t *target, span time.Duration, ended chan error) (found steeringFound, err error) {
	const askedName, activeName = "weir_steering_asked_total", "weir_steering_active"
	looks := int(span / look)
	var first, late, last map[string]float64
	for i := range looks + 1 {
		if i > 0 {
			select {
			case err := <-ended:
				return found, fmt.Errorf("the load ended: %w", errors.Join(err, context.Cause(ctx)))
			case <-time.After(look):
			}
		}
		now, err := t.metrics(ctx)
		if err != nil {
			return found, err
		}
		if i == 0 {
			first = now
		} else {
			found.Shares = append(found.Shares, busiest(last, now))
		}
		if i == 1 && found.Shares[0] < uneven {
			return found, errEven
		}
		if i == looks*3/4 {
			late = now
		}
		last = now
	}
	found.Before, found.After = found.Shares[0], busiest(late, last)
	found.Asked = sumOf(last, askedName) - sumOf(first, askedName)
	found.Late = sumOf(last, askedName) - sumOf(late, askedName)
	found.Active = sumOf(last, activeName) > 0
	return found, nil
}

// busiest is the load of the busiest worker between two looks, by the mean of all.
func busiest(before, after map[string]float64) float64 {
	var most, sum float64
	n := 0
	for s := range maps.Keys(after) {
		if strings.HasPrefix(s, "weir_worker_datagrams_total{") {
			load := after[s] - before[s]
			most, sum, n = max(most, load), sum+load, n+1
		}
	}
	return most * float64(n) / sum
}

// print writes the report, and tells whether every figure is within its gate.
func (r *workersReport) print() error {
	var beyond []string
	if !(r.Lock.Share <= r.Lock.Gate) {
		beyond = append(beyond, "lock")
	}
	if !(r.Steering.After <= r.Steering.Gate) || r.Steering.Late > 0 || r.Steering.Active {
		beyond = append(beyond, "steering")
	}
	if r.Plan.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	} else {
		l, s := &r.Lock, &r.Steering
		fmt.Printf("%s; %d workers\n", r.Machine, r.Workers)
		fmt.Printf("lock      %.0f decisions a second of one tenant; its lock was waited for in %.2f %% of the workers' time, %.2f %% of what they used; gate %.0f %%\n",
			l.PerSecond, l.Share*100, l.OfCPU*100, l.Gate*100)
		fmt.Printf("steering  %d flows; the busiest worker had %.2f of the mean, and %.2f in the last quarter; gate %.2f\n", s.Flows, s.Before, s.After, s.Gate)
		fmt.Printf("          %.0f answers asked a flow to move, %.0f of them in the last quarter; still active: %v\n", s.Asked, s.Late, s.Active)
		fmt.Printf("          every %v: %s\n", look, shares(s.Shares))
	}
	if len(beyond) > 0 {
		return fmt.Errorf("%w: %s", errGate, strings.Join(beyond, ", "))
	}
	return nil
}

func shares(all []float64) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, fmt.Sprintf("%.2f", s))
	}
	return strings.Join(texts, " ")
}
