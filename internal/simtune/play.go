package simtune

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/simrun"
	"github.com/weirhq/weir/policy"
)

// A Trial is one policy with one seed, over all scenarios.
type Trial struct {
	Policy policy.Policy
	Seed   uint64
}

// A Player plays trials and returns their outcomes in the same order. What it returns depends on
// the trials alone.
type Player func(ctx context.Context, trials []Trial) ([]Outcome, error)

// together is how many trials are played at a time: a run's measures are megabytes, of which only
// a few numbers are kept.
const together = 16

// Play returns the player that runs the simulator, workers runs at a time, 0 for one for each
// processor. progress, if it is not nil, is told how much time has been simulated, by one goroutine
// at a time.
func (s *Scenarios) Play(workers int, progress func(played time.Duration)) Player {
	var before time.Duration
	return func(ctx context.Context, trials []Trial) ([]Outcome, error) {
		var all []Outcome
		for len(trials) > 0 {
			some := trials[:min(together, len(trials))]
			trials = trials[len(some):]
			o := simrun.Options{Workers: workers}
			if progress != nil {
				o.Progress = func(played, _ time.Duration) { progress(before + played) }
			}
			outcomes, err := s.play(ctx, some, o)
			if err != nil {
				return nil, err
			}
			all = append(all, outcomes...)
			before += s.Time() * time.Duration(len(some))
		}
		return all, nil
	}
}

func (s *Scenarios) play(ctx context.Context, trials []Trial, o simrun.Options) ([]Outcome, error) {
	var jobs []simrun.Job
	for _, t := range trials {
		for _, scenario := range s.All {
			jobs = append(jobs, simrun.Job{Scenario: under(scenario, t.Policy), Seed: t.Seed})
		}
	}
	results, err := simrun.Run(ctx, jobs, o)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(trials))
	for i := range results {
		t := i / len(s.All)
		outcomes[t] = append(outcomes[t], valuesOf(results[i].Measures, float64(jobs[i].Scenario.Quotas.DedupTTL)))
	}
	return outcomes, nil
}
