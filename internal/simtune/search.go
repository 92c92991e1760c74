package simtune

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// A Plan is what is to be searched for, and how long.
type Plan struct {
	Objective Objective
	Scenarios []string // their names; the first is health
	Weights   []int    // and how much each counts
	Fits      func(policy.Policy) bool
	Seed      uint64 // the first; all that are used follow it
	Budget    Budget
}

// A Budget bounds a search. Counts are of trials, but where they say otherwise.
type Budget struct {
	Screen     int // policies that are tried first, spread over the grid
	Beam       int // policies whose neighbors are tried
	Walk       int // trials of the walk to better policies
	WalkSeeds  int
	Finalists  int // policies that get the seeds of the selection
	Select     int // seeds of the selection
	Confirm    int // seeds that confirm
	Contenders int // policies that are put to the confirmation until one passes
	Spread     int // policies of the walk's front that are shown besides
}

// Thorough and Quick are the budgets of weir tune.
var (
	Thorough = Budget{Screen: 80, Beam: 4, Walk: 280, WalkSeeds: 2, Finalists: 12, Select: 5, Confirm: 10, Contenders: 3, Spread: 4}
	Quick    = Budget{Screen: 36, Beam: 2, Walk: 60, WalkSeeds: 1, Finalists: 5, Select: 3, Confirm: 5, Contenders: 2, Spread: 2}
)

// minGain is what a policy has to save, as a share of the cost, to be worth a change.
const minGain = 0.05

// Trials is how many trials the budget comes to at most.
func (b *Budget) Trials() int {
	others := len(ObjectiveNames()) - 1
	finalists := b.Finalists + 1 + others
	return b.Screen + b.Walk + // search
		finalists*b.Select + b.Contenders*axes*b.Select + // selection, and simplification
		(len(policy.PresetNames())+others+b.Spread+b.Contenders+axes)*b.Confirm
}

// entry is a policy that was tried.
type entry struct {
	policy   policy.Policy
	at       point
	onGrid   bool
	order    int                // in which it was first tried, which decides between equals
	outcomes map[uint64]Outcome // by seed
}

// search is a search under way.
type search struct {
	Plan
	play    Player
	entries []*entry // in the order in which they were first tried
	known   map[policy.Policy]*entry
	base    *entry // the default
	trials  int
}

// Search looks for the policy that suits best. The same plan and player give the same result.
func Search(ctx context.Context, plan Plan, play Player) (*Result, error) {
	s := newSearch(plan, play)
	if err := s.walk(ctx); err != nil {
		return nil, err
	}
	ranked, others, err := s.choose(ctx)
	if err != nil {
		return nil, err
	}
	return s.confirm(ctx, ranked, others)
}

func newSearch(plan Plan, play Player) *search {
	s := &search{Plan: plan, play: play, known: make(map[policy.Policy]*entry)}
	s.base = s.add(defaultPoint)
	return s
}

// seeds returns n seeds behind the first skip ones.
func (s *search) seeds(skip, n int) []uint64 {
	var all []uint64
	for i := range n {
		all = append(all, s.Seed+uint64(skip+i))
	}
	return all
}

// The three sets of seeds have none in common: a policy that was lucky with the seeds by which it was
// found is not so with those by which it is judged.
func (s *search) walkSeeds() []uint64   { return s.seeds(0, s.Budget.WalkSeeds) }
func (s *search) selectSeeds() []uint64 { return s.seeds(s.Budget.WalkSeeds, s.Budget.Select) }
func (s *search) confirmSeeds() []uint64 {
	return s.seeds(s.Budget.WalkSeeds+s.Budget.Select, s.Budget.Confirm)
}

// add returns the entry of a point, nil if its policy does not fit.
func (s *search) add(pt point) *entry {
	pt = pt.normal()
	e := s.addPolicy(pt.policy())
	if e != nil && !e.onGrid {
		e.at, e.onGrid = pt, true
	}
	return e
}

func (s *search) addPolicy(p policy.Policy) *entry {
	if e, ok := s.known[p]; ok {
		return e
	}
	if _, err := p.Compile(); err != nil || !s.Fits(p) {
		return nil
	}
	e := &entry{policy: p, order: len(s.entries), outcomes: make(map[uint64]Outcome)}
	s.known[p] = e
	s.entries = append(s.entries, e)
	return e
}

// try plays what has not been played of some entries with some seeds.
func (s *search) try(ctx context.Context, entries []*entry, seeds []uint64) error {
	var trials []Trial
	var whose []*entry
	asked := make(map[Trial]bool)
	for _, e := range entries {
		for _, seed := range seeds {
			t := Trial{e.policy, seed}
			if e.outcomes[seed] != nil || asked[t] {
				continue
			}
			asked[t] = true
			trials, whose = append(trials, t), append(whose, e)
		}
	}
	outcomes, err := s.play(ctx, trials)
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		whose[i].outcomes[trials[i].Seed] = o
	}
	s.trials += len(trials)
	return nil
}

// walk tries policies that are spread over the grid, and then again and again the neighbors of the
// best ones, until none is better or the budget is spent.
func (s *search) walk(ctx context.Context) error {
	seeds := s.walkSeeds()
	first := s.screen()
	if err := s.try(ctx, first, seeds[:1]); err != nil {
		return err
	}
	best := s.rank(first, seeds[:1], &s.Objective)
	most := s.trials + s.Budget.Walk
	tried := append([]*entry{s.base}, best[:min(2*s.Budget.Beam, len(best))]...)
	if err := s.try(ctx, tried, seeds); err != nil {
		return err
	}
	for {
		beam := s.rank(tried, seeds, &s.Objective)
		beam = beam[:min(s.Budget.Beam, len(beam))]
		fresh := s.around(beam, tried, (most-s.trials)/len(seeds))
		if len(fresh) == 0 {
			return nil
		}
		if err := s.try(ctx, fresh, seeds); err != nil {
			return err
		}
		tried = append(tried, fresh...)
	}
}

// screen are the presets, and policies all over the grid.
func (s *search) screen() []*entry {
	var all []*entry
	add := func(e *entry) {
		if e != nil && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	add(s.base)
	for _, name := range policy.PresetNames() {
		p, _ := policy.Preset(name)
		add(s.addPolicy(p))
	}
	var fitting []int // rounds that leave room for a replay
	for round := range rounds {
		if s.add(point{axisRound: round, axisPrefer: parts, axisReplays: 1, axisFinal: 2, axisDelivery: 1}) != nil {
			fitting = append(fitting, round)
		}
	}
	// With little to spend there are fewer rounds, and not fewer shapes.
	every := 1 + (len(fitting)*len(shapes)-1)/max(1, s.Budget.Screen-len(all))
	for i := every / 2; i < len(fitting); i += every {
		for _, shape := range shapes {
			shape[axisRound] = fitting[i]
			add(s.add(shape))
		}
	}
	return all
}

// shapes are what is tried with each length of round 0: like the default; patient, and delivering
// late; with a bound on what a slow oldest server costs; and with nobody preferred.
var shapes = [...]point{
	{axisPrefer: parts, axisReplays: 1, axisFinal: 2, axisDelivery: 1},
	{axisPrefer: parts, axisLater: 1, axisReplays: 2, axisFinal: 3, axisDelivery: 4},
	{axisPrefer: 2, axisReplays: 3, axisFinal: 3, axisDelivery: 4},
	{axisPrefer: 0, axisReplays: 2, axisFinal: 4, axisDelivery: 1},
}

// around are neighbors of the beam that have not been tried, at most so many, in turn of each.
func (s *search) around(beam, tried []*entry, most int) []*entry {
	var all []*entry
	for _, e := range beam {
		if !e.onGrid {
			continue
		}
		for _, pt := range e.at.neighbors() {
			next := s.add(pt)
			if next == nil || len(all) >= most || slices.Contains(tried, next) || slices.Contains(all, next) {
				continue
			}
			all = append(all, next)
		}
	}
	return all
}

// cost is the mean of an entry's costs with some seeds, all of which it has been played with. Beyond
// the guards it costs more than anything within.
func (s *search) cost(e *entry, seeds []uint64, o *Objective) float64 {
	sum := 0.0
	for _, c := range s.costs(e, seeds, o) {
		sum += c
	}
	cost := sum / float64(len(seeds))
	if v := violation(meanOutcome(e, seeds), meanOutcome(s.base, seeds), s.Weights); v > 0 {
		cost += 1000 + v
	}
	return cost
}

// costs are the costs with each seed, compared with the default with the same seed.
func (s *search) costs(e *entry, seeds []uint64, o *Objective) []float64 {
	all := make([]float64, len(seeds))
	for i, seed := range seeds {
		all[i] = o.logCost(weigh(e.outcomes[seed], s.Weights), weigh(s.base.outcomes[seed], s.Weights))
	}
	return all
}

// rank sorts entries by their cost.
func (s *search) rank(entries []*entry, seeds []uint64, o *Objective) []*entry {
	costs := make(map[*entry]float64, len(entries))
	for _, e := range entries {
		costs[e] = s.cost(e, seeds, o)
	}
	ranked := slices.Clone(entries)
	slices.SortFunc(ranked, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(costs[a], costs[b]), cmp.Compare(a.order, b.order))
	})
	return slices.Compact(ranked)
}

// candidate is a policy that is to be shown.
type candidate struct {
	*entry
	name string
}

// choose has the best of the walk played with the seeds of the selection. It returns the contenders
// for the recommendation, best first, and others that are worth a look: the best by other objectives,
// and some that are spread over the Pareto front.
func (s *search) choose(ctx context.Context) (contenders []*entry, others []candidate, err error) {
	walked := s.playedWith(s.walkSeeds())
	ranked := s.rank(walked, s.walkSeeds(), &s.Objective)
	final := append([]*entry{s.base}, ranked[:min(s.Budget.Finalists, len(ranked))]...)
	for i := range objectives {
		if objectives[i] == s.Objective {
			continue
		}
		best := s.rank(walked, s.walkSeeds(), &objectives[i])[0]
		others = append(others, candidate{best, "for-" + objectives[i].Name})
		final = append(final, best)
	}
	for i, e := range s.spread(walked) {
		others = append(others, candidate{e, "front-" + strconv.Itoa(i+1)})
	}
	seeds := s.selectSeeds()
	if err := s.try(ctx, final, seeds); err != nil {
		return nil, nil, err
	}
	ranked = s.rank(final, seeds, &s.Objective)
	for _, e := range ranked[:min(s.Budget.Contenders, len(ranked))] {
		if e == s.base {
			break // what comes behind it is worse
		}
		if e, err = s.simplify(ctx, e, seeds); err != nil {
			return nil, nil, err
		}
		if !slices.Contains(contenders, e) && e != s.base {
			contenders = append(contenders, e)
		}
	}
	return contenders, others, nil
}

// spread are entries on the Pareto front of those that are within the guards, evenly from the lowest
// latency to the highest.
func (s *search) spread(entries []*entry) []*entry {
	seeds := s.walkSeeds()
	base := meanOutcome(s.base, seeds)
	var within []*entry
	var values []Values
	for _, e := range entries {
		if o := meanOutcome(e, seeds); violation(o, base, s.Weights) == 0 {
			within, values = append(within, e), append(values, weigh(o, s.Weights))
		}
	}
	var on []int
	for i, is := range front(values) {
		if is {
			on = append(on, i)
		}
	}
	slices.SortStableFunc(on, func(a, b int) int { return cmp.Compare(values[a][P99], values[b][P99]) })
	var all []*entry
	for i := range min(s.Budget.Spread, len(on)) {
		all = append(all, within[on[i*(len(on)-1)/max(1, s.Budget.Spread-1)]])
	}
	return all
}

// playedWith are the entries that have been played with all of some seeds.
func (s *search) playedWith(seeds []uint64) []*entry {
	var all []*entry
	for _, e := range s.entries {
		if !slices.ContainsFunc(seeds, func(seed uint64) bool { return e.outcomes[seed] == nil }) {
			all = append(all, e)
		}
	}
	return all
}

// simplify takes back to the default each number that the seeds do not show to be worth anything.
func (s *search) simplify(ctx context.Context, e *entry, seeds []uint64) (*entry, error) {
	if !e.onGrid {
		return e, nil
	}
	back := s.reverts(e)
	entries := make([]*entry, len(back))
	for i := range back {
		entries[i] = back[i].entry
	}
	if err := s.try(ctx, entries, seeds); err != nil {
		return nil, err
	}
	simple := e.at
	for _, r := range back {
		d := s.difference(r.entry, e, seeds)
		if d.Mean < minWorth && s.cost(r.entry, seeds, &s.Objective) < 1000 {
			simple[r.axis] = defaultPoint[r.axis]
		}
	}
	together := s.add(simple)
	if together == nil || together == e {
		return e, nil
	}
	// Together they may matter though none does alone.
	if err := s.try(ctx, []*entry{together}, seeds); err != nil {
		return nil, err
	}
	if s.difference(together, e, seeds).Mean < minWorth && s.cost(together, seeds, &s.Objective) < 1000 {
		return together, nil
	}
	return e, nil
}

// minWorth is how much a number that is not the default's has to save, as a logarithm.
const minWorth = 0.01

// revert is a policy with one number taken back to the default's.
type revert struct {
	axis  int
	entry *entry
}

// reverts are all of an entry's, without those that do not fit or make no difference.
func (s *search) reverts(e *entry) []revert {
	var all []revert
	for axis := range e.at {
		back := e.at
		back[axis] = defaultPoint[axis]
		if r := s.add(back); r != nil && r != e {
			all = append(all, revert{axis, r})
		}
	}
	return all
}

// difference is how much more a costs than b, with the same seeds.
func (s *search) difference(a, b *entry, seeds []uint64) sim.Spread {
	ofA, ofB := s.costs(a, seeds, &s.Objective), s.costs(b, seeds, &s.Objective)
	for i := range ofA {
		ofA[i] -= ofB[i]
	}
	return sim.SpreadOf("", ofA)
}

// meanOutcome is the mean of an entry's outcomes with some seeds.
func meanOutcome(e *entry, seeds []uint64) Outcome {
	var mean Outcome
	for i, seed := range seeds {
		o := e.outcomes[seed]
		if i == 0 {
			mean = make(Outcome, len(o))
		}
		for k := range o {
			for m := range o[k] {
				mean[k][m] += o[k][m] / float64(len(seeds))
			}
		}
	}
	return mean
}
