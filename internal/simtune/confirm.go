package simtune

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// A Result is what a search came to.
type Result struct {
	Objective   Objective
	Scenarios   []string
	Weights     []int
	Rows        []Row // the default first, then the recommendation if it is another, presets, others
	Recommended int   // the row of the recommendation; 0 is the default
	// Gain is how much less the recommendation costs than the default, in percent, with the ends of
	// its 95 % interval. It is of the best that was found if none was confirmed.
	Gain, GainLow, GainHigh float64
	Refuted                 string   // why the best that was found is not recommended; "" if it is, or there is none
	Changes                 []Change // what the recommendation changes, the most worth first
	Tried                   int      // policies
	Trials                  int
	WalkSeeds, SelectSeeds  int
	ConfirmSeeds            []uint64
	Cloud                   []Values // all policies of the walk, by its seeds
}

// A Row is a policy by the seeds that confirm.
type Row struct {
	Name   string
	Policy policy.Policy
	Cells  []sim.Spread // in the order of Measures, over all scenarios
	// ByScenario are the means in each scenario.
	ByScenario []Values
	Cost       sim.Spread // in shares of the default's cost
	Front      bool       // no other row is better in one measure and worse in none
	Breaches   []Breach   // guards that it is beyond
}

// Values are the means of the row.
func (r *Row) Values() Values {
	var v Values
	for m, cell := range r.Cells {
		v[m] = cell.Mean
	}
	return v
}

// A Change is a number that the recommendation moves, and what it is worth: the recommendation
// beside itself with this number as the default has it.
type Change struct {
	From, To string
	// Gains and Losses are the measures whose difference matters to somebody and has a 95 % interval
	// that leaves out 0.
	Gains, Losses []Effect
	Saves         float64 // of the cost without it, in percent
}

// An Effect is a measure without a change and with it.
type Effect struct {
	Measure       Measure
	Without, With float64
}

// confirm has everything that is to be shown played with fresh seeds, and recommends the first
// contender that is better with those, too.
func (s *search) confirm(ctx context.Context, contenders []*entry, others []candidate) (*Result, error) {
	seeds := s.confirmSeeds()
	r := &Result{
		Objective: s.Objective, Scenarios: s.Scenarios, Weights: s.Weights, WalkSeeds: s.Budget.WalkSeeds, SelectSeeds: s.Budget.Select, ConfirmSeeds: seeds,
	}
	shown := []candidate{{s.base, "default"}}
	for _, n := range simcompare.Presets() {
		if e := s.addPolicy(n.Policy); e != nil {
			shown = append(shown, candidate{e, n.Name})
		}
	}
	for _, e := range contenders {
		shown = append(shown, candidate{e, ""}) // which is told below
	}
	shown = append(shown, others...)
	var entries []*entry
	for _, c := range shown {
		entries = append(entries, c.entry)
	}
	if err := s.try(ctx, entries, seeds); err != nil {
		return nil, err
	}
	best := s.base
	for i, e := range contenders {
		gain := s.difference(e, s.base, seeds)
		why := s.refuses(e, gain, seeds)
		if i == 0 || why == "" {
			r.setGain(gain)
			r.Refuted = why
		}
		if why == "" {
			best = e
			break
		}
	}
	s.list(r, shown, best)
	r.markFront()
	if best != s.base {
		if err := s.explain(ctx, r, best); err != nil {
			return nil, err
		}
	}
	for _, e := range s.playedWith(s.walkSeeds()[:1]) {
		r.Tried++
		r.Cloud = append(r.Cloud, weigh(e.outcomes[s.walkSeeds()[0]], s.Weights))
	}
	r.Trials = s.trials
	return r, nil
}

// list makes rows of what is to be shown, but for others that no measure tells from a row before them.
func (s *search) list(r *Result, shown []candidate, best *entry) {
	if best != s.base { // it is beside the default
		r.Recommended = 1
		shown = slices.Insert(shown, 1, candidate{best, "recommended"})
	}
	presets := len(policy.PresetNames()) + r.Recommended
	listed := make(map[*entry]bool)
	contenders := 0
	for i, c := range shown {
		if listed[c.entry] {
			continue
		}
		listed[c.entry] = true
		row := s.row(c.entry, s.confirmSeeds())
		row.Name = c.name
		if c.name == "" {
			contenders++
			row.Name = "other-" + strconv.Itoa(contenders)
		}
		if i >= presets && slices.ContainsFunc(r.Rows, func(o Row) bool { return same(o.Values(), row.Values()) }) {
			continue
		}
		r.Rows = append(r.Rows, row)
	}
}

// refuses says why a contender is not to be recommended by these seeds, or nothing.
func (s *search) refuses(e *entry, gain sim.Spread, seeds []uint64) string {
	switch {
	case violation(meanOutcome(e, seeds), meanOutcome(s.base, seeds), s.Weights) > 0:
		return "with fresh seeds it is beyond a guard"
	case gain.Mean+gain.Half >= 0:
		return "with fresh seeds the interval of what it saves holds 0"
	case gain.Mean > math.Log(1-minGain):
		return "it saves less than 5 %, which is not worth a change"
	}
	return ""
}

func (r *Result) setGain(d sim.Spread) {
	saves := func(v float64) float64 { return 100 * (1 - math.Exp(v)) }
	r.Gain, r.GainLow, r.GainHigh = saves(d.Mean), saves(d.Mean+d.Half), saves(d.Mean-d.Half)
}

func (s *search) row(e *entry, seeds []uint64) Row {
	row := Row{Policy: e.policy, ByScenario: meanOutcome(e, seeds)}
	row.Breaches = breaches(row.ByScenario, meanOutcome(s.base, seeds), s.Weights)
	for _, m := range Measures() {
		row.Cells = append(row.Cells, sim.SpreadOf(m.Name(), s.values(e, seeds, m)))
	}
	costs := s.costs(e, seeds, &s.Objective)
	for i := range costs {
		costs[i] = math.Exp(costs[i])
	}
	row.Cost = sim.SpreadOf("cost", costs)
	return row
}

// values are a measure over all scenarios with each seed.
func (s *search) values(e *entry, seeds []uint64, m Measure) []float64 {
	all := make([]float64, len(seeds))
	for i, seed := range seeds {
		all[i] = weigh(e.outcomes[seed], s.Weights)[m]
	}
	return all
}

func (r *Result) markFront() {
	var all []Values
	for _, row := range r.Rows {
		all = append(all, row.Values())
	}
	for i, on := range front(all) {
		r.Rows[i].Front = on
	}
}

// explain plays the recommendation with each number as the default has it.
func (s *search) explain(ctx context.Context, r *Result, best *entry) error {
	if !best.onGrid {
		return nil
	}
	seeds := s.confirmSeeds()
	back := s.reverts(best)
	var entries []*entry
	for _, b := range back {
		entries = append(entries, b.entry)
	}
	if err := s.try(ctx, entries, seeds); err != nil {
		return err
	}
	for _, b := range back {
		c := Change{From: defaultPoint.words(b.axis), To: best.at.words(b.axis)}
		c.Saves = 100 * (1 - math.Exp(-s.difference(b.entry, best, seeds).Mean))
		for _, m := range Measures() {
			with, without := s.values(best, seeds, m), s.values(b.entry, seeds, m)
			e := Effect{m, sim.SpreadOf("", without).Mean, sim.SpreadOf("", with).Mean}
			for i := range with {
				with[i] -= without[i]
			}
			switch d := sim.SpreadOf("", with); {
			case alike(m, e.Without, e.With):
			case d.Mean+d.Half < 0:
				c.Gains = append(c.Gains, e)
			case d.Mean-d.Half > 0:
				c.Losses = append(c.Losses, e)
			}
		}
		r.Changes = append(r.Changes, c)
	}
	slices.SortStableFunc(r.Changes, func(a, b Change) int {
		switch {
		case a.Saves > b.Saves:
			return -1
		case a.Saves < b.Saves:
			return 1
		}
		return 0
	})
	return nil
}
