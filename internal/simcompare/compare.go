// Package simcompare plays scenarios under several policies and puts what they came to side by
// side. All policies get the same seeds, so what differs is the policies' doing.
package simcompare

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weirhq/weir/internal/simrun"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// MaxRuns bounds the runs of one comparison.
const MaxRuns = 10_000

// together is how many runs are held in memory at a time, if one policy's seeds are not more: a
// run's measures are megabytes.
const together = 32

// A Plan is what is to be compared.
type Plan struct {
	Scenarios []*sim.Scenario
	Policies  []Named
	Seed      uint64 // the first
	Seeds     int    // from Seed on, for each scenario and policy
}

// A Comparison is a scenario under several policies.
type Comparison struct {
	Scenario *sim.Scenario
	Seed     uint64
	Seeds    int
	Columns  []Column
}

// A Column is what a policy came to.
type Column struct {
	Name   string
	Policy policy.Policy
	Seeds  *sim.Seeds
	values [][]value // by scalar, then by seed
}

// value is a scalar of a run, if it has one.
type value struct {
	v  float64
	ok bool
}

// NewColumn returns the column of a policy's runs, in the order of seeds.
func NewColumn(name string, p policy.Policy, runs []*sim.Measures) Column {
	c := Column{Name: name, Policy: p, Seeds: sim.Summarize(runs)}
	for _, s := range sim.Scalars() {
		values := make([]value, len(runs))
		for i, m := range runs {
			values[i].v, values[i].ok = s.Value(m)
		}
		c.values = append(c.values, values)
	}
	return c
}

// Validate reports what is wrong with the plan before anything is played: too many runs, or a
// policy that does not fit a scenario.
func (p *Plan) Validate() error {
	cells := len(p.Scenarios) * len(p.Policies)
	switch {
	case cells == 0:
		return fmt.Errorf("%d scenarios and %d policies: nothing to compare", len(p.Scenarios), len(p.Policies))
	case p.Seeds < 1 || p.Seeds > MaxRuns/cells:
		return fmt.Errorf("%d seeds of %d scenarios by %d policies: give 1 to %d seeds", p.Seeds, len(p.Scenarios), len(p.Policies), MaxRuns/cells)
	case p.Seed > math.MaxUint64-MaxRuns:
		return fmt.Errorf("seed %d: give at most %d", p.Seed, uint64(math.MaxUint64-MaxRuns))
	}
	for _, s := range p.Scenarios {
		for _, named := range p.Policies {
			if err := named.under(s).Validate(); err != nil {
				return fmt.Errorf("policy %s in scenario %s: %w", named.Name, s.Name, err)
			}
		}
	}
	return nil
}

// Play plays everything and returns a comparison for each scenario. progress, if it is not nil, is
// told now and then how much of the time of all scenarios has been played, by one goroutine at a
// time.
func (p *Plan) Play(ctx context.Context, progress func(played, all time.Duration)) ([]Comparison, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var all, before time.Duration
	for _, s := range p.Scenarios {
		all += s.Length * time.Duration(len(p.Policies)*p.Seeds)
	}
	o := simrun.Options{}
	comparisons := make([]Comparison, 0, len(p.Scenarios))
	for _, s := range p.Scenarios {
		c := Comparison{Scenario: s, Seed: p.Seed, Seeds: p.Seeds}
		group := max(1, together/p.Seeds)
		for first := 0; first < len(p.Policies); first += group {
			named := p.Policies[first:min(first+group, len(p.Policies))]
			if progress != nil {
				o.Progress = func(played, _ time.Duration) { progress(before+played, all) }
			}
			columns, err := p.columns(ctx, s, named, o)
			if err != nil {
				return nil, err
			}
			c.Columns = append(c.Columns, columns...)
			before += s.Length * time.Duration(len(named)*p.Seeds)
		}
		comparisons = append(comparisons, c)
	}
	return comparisons, nil
}

// columns plays a scenario under some of the policies.
func (p *Plan) columns(ctx context.Context, s *sim.Scenario, policies []Named, o simrun.Options) ([]Column, error) {
	var jobs []simrun.Job
	for _, named := range policies {
		under := named.under(s)
		for i := range p.Seeds {
			jobs = append(jobs, simrun.Job{Scenario: under, Seed: p.Seed + uint64(i)})
		}
	}
	results, err := simrun.Run(ctx, jobs, o)
	if err != nil {
		return nil, err
	}
	var columns []Column
	for i, named := range policies {
		runs := make([]*sim.Measures, p.Seeds)
		for seed := range runs {
			runs[seed] = results[i*p.Seeds+seed].Measures
		}
		columns = append(columns, NewColumn(named.Name, named.under(s).Policy, runs))
	}
	return columns, nil
}
