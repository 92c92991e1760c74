// Package simrun plays scenarios in parallel: a run of the simulator is of one goroutine, and
// runs do not know of each other.
package simrun

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/sim"
)

// A Job is one run.
type Job struct {
	Scenario *sim.Scenario // is not changed, and may be that of other jobs
	Seed     uint64
	Log      io.Writer // gets the event log; nil for none
}

// A Result is what a run came to.
type Result struct {
	Summary  sim.Summary
	Measures *sim.Measures
}

// Options are how jobs are run. The zero value is the default.
type Options struct {
	Workers int // runs at a time; 0 is one for each processor that Go uses
	// Progress, if there is one, is told now and then how much of the time of all scenarios has
	// been played. It is called by one goroutine at a time.
	Progress func(played, all time.Duration)
}

// stride is how many steps a run makes between two looks at what is around it: below a
// millisecond's worth.
const stride = 1024

// Run plays all jobs and returns their results in the jobs' order. The first error ends it, and
// so does the context's end.
func Run(ctx context.Context, jobs []Job, o Options) ([]Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]Result, len(jobs))
	p := &progress{tell: o.Progress}
	for i := range jobs {
		p.all += jobs[i].Scenario.Length
	}
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(workers, len(jobs)) {
		running.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				r, err := run(ctx, &jobs[i], p)
				if err != nil {
					cancel(fmt.Errorf("%s with seed %d: %w", jobs[i].Scenario.Name, jobs[i].Seed, err))
					return
				}
				results[i] = r
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

func run(ctx context.Context, job *Job, p *progress) (Result, error) {
	measurer, err := sim.NewMeasurer(job.Scenario, sim.MeasureOptions{})
	if err != nil {
		return Result{}, err
	}
	recorders := tee{measurer}
	var log *sim.Log
	if job.Log != nil {
		log = sim.NewLog(job.Log, job.Scenario)
		recorders = append(recorders, log)
	}
	world, err := sim.New(job.Scenario, job.Seed, recorders)
	if err != nil {
		return Result{}, err
	}
	told := time.Duration(0)
	for steps := 1; world.Step(); steps++ {
		if steps%stride != 0 {
			continue
		}
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		now := min(max(world.Now(), 0), job.Scenario.Length)
		p.add(now - told)
		told = now
	}
	p.add(job.Scenario.Length - told)
	if err := world.Err(); err != nil {
		return Result{}, err
	}
	if log != nil && log.Err() != nil {
		return Result{}, fmt.Errorf("writing the event log: %w", log.Err())
	}
	measures, err := measurer.Finish()
	return Result{world.Summary(), measures}, err
}

// progress adds up what is played.
type progress struct {
	mu     sync.Mutex
	tell   func(played, all time.Duration)
	played time.Duration
	all    time.Duration
}

func (p *progress) add(d time.Duration) {
	if p.tell == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.played += d
	p.tell(p.played, p.all)
}

// tee hands each record to several recorders.
type tee []sim.Recorder

// Record hands r on.
func (t tee) Record(r *sim.Record) {
	for _, to := range t {
		to.Record(r)
	}
}
