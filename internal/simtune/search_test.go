package simtune

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
)

// surface is a world in which what a policy comes to is known.
func surface(of func(p policy.Policy, t *policy.Timeline, seed uint64) Outcome) Player {
	return func(_ context.Context, trials []Trial) ([]Outcome, error) {
		var all []Outcome
		for _, trial := range trials {
			line, err := trial.Policy.Compile()
			if err != nil {
				return nil, err
			}
			all = append(all, of(trial.Policy, line, trial.Seed))
		}
		return all, nil
	}
}

// noise is from -1 to 1, of a policy and a seed.
func noise(p policy.Policy, seed uint64, what string) float64 {
	h := fnv.New64a()
	h.Write([]byte(p.String() + what))
	h.Write([]byte{byte(seed), byte(seed >> 8)})
	x := h.Sum64()
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 32
	return float64(x%200_001)/100_000 - 1
}

func testPlan(t *testing.T, objective string, b Budget) Plan {
	t.Helper()
	o, err := FindObjective(objective)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(p policy.Policy) bool {
		line, err := p.Compile()
		return err == nil && line.Horizon() <= 300*time.Millisecond
	}
	return Plan{Objective: o, Scenarios: []string{"health", "killed"}, Weights: []int{3, 1}, Fits: fits, Seed: 1, Budget: b}
}

// bowl is best with round 0 of 6 ms, half of it preferred, three replays, and completion delivery
// half of round 0 after the decision.
func bowl(p policy.Policy, line *policy.Timeline, seed uint64) Outcome {
	round := line.Start(1)
	off := func(v, best float64) float64 { return math.Abs(math.Log2(v / best)) }
	v := Values{
		P50: 1, P99: 2 + 2*off(float64(round), float64(6*time.Millisecond)) + 4*math.Abs(float64(line.PreferenceEnd(0))/float64(round)-0.5),
		Undecided: 0.02 * off(float64(1+p.Replays), 4), False: 1, Datagrams: 6,
	}
	v[P999] = v[P99]
	if p.CompletionDelivery {
		v[Datagrams] += 2 * math.Abs(float64(line.DeliveryDelay())/float64(round)-0.5)
	} else {
		v[False] += 4
	}
	v[P99] += 0.01 * noise(p, seed, "p99")
	return Outcome{v, v}
}

// TestFindsTheBottom holds that the search finds the best policy of a known world, confirms it, and
// says what each of its numbers is worth.
func TestFindsTheBottom(t *testing.T) {
	for name, budget := range map[string]Budget{"thorough": Thorough, "quick": Quick} {
		r, err := Search(t.Context(), testPlan(t, "balanced", budget), surface(bowl))
		if err != nil {
			t.Fatal(err)
		}
		best := r.Rows[r.Recommended]
		line, err := best.Policy.Compile()
		if err != nil {
			t.Fatal(err)
		}
		round := line.Start(1)
		if r.Recommended != 1 || best.Name != "recommended" || round != 6*time.Millisecond || line.PreferenceEnd(0) != round/2 ||
			best.Policy.Replays != 3 || line.DeliveryDelay() != round/2 {
			t.Errorf("%s: row %d, %v", name, r.Recommended, best.Policy)
		}
		if !best.Front || best.Breaches != nil || r.Refuted != "" || !(r.GainLow > 20 && r.GainLow < r.Gain && r.Gain < r.GainHigh) {
			t.Errorf("%s: %+v, saves %v from %v to %v, %q", name, best, r.Gain, r.GainLow, r.GainHigh, r.Refuted)
		}
		if r.Rows[0].Name != "default" || r.Rows[0].Front || r.Rows[0].Cost.Mean != 1 {
			t.Errorf("%s: the default is %+v", name, r.Rows[0])
		}
		// What makes no difference in this world is as in the default.
		if best.Policy.Gap != policy.Default().Gap && line.Start(2) != 2*round || line.Horizon()-line.Start(4) != round {
			t.Errorf("%s: %v has numbers moved for nothing", name, best.Policy)
		}
		why := strings.Join(r.Why(), "\n")
		for _, want := range []string{
			"Round 0 lasts 6ms, instead of: round 0 lasts 20ms. Bought: p99 5.4", "→ 2", "3 replays at most, instead of: 1 replay at most. Bought: undecided 0.02 → 0 %",
			"for half of round 0, instead of", "Completion delivery only to servers that have been asked for 3ms without an answer, instead of: completion delivery with the decision. Bought: datagrams 7 → 6.",
		} {
			if !strings.Contains(why, want) {
				t.Errorf("%s: it says\n%s\nwithout %q", name, why, want)
			}
		}
		if r.Trials > budget.Trials() {
			t.Errorf("%s: %d trials, and the budget is %d", name, r.Trials, budget.Trials())
		}
	}
}

// TestLuckIsNotRecommended holds that among policies that differ by luck alone none is recommended,
// though the best by the seeds of the walk looks much better.
func TestLuckIsNotRecommended(t *testing.T) {
	recommended, lured := 0, 0
	for seed := range uint64(40) {
		plan := testPlan(t, "balanced", Quick)
		plan.Seed = 1 + 100*seed
		r, err := Search(t.Context(), plan, surface(func(p policy.Policy, _ *policy.Timeline, seed uint64) Outcome {
			v := Values{P50: 1, False: 1, Datagrams: 6}
			v[P99] = 5 * math.Exp(noise(p, seed, "p99"))
			v[P999] = v[P99]
			return Outcome{v, v}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if r.Recommended != 0 {
			recommended++
		}
		least := math.Inf(1)
		for _, v := range r.Cloud {
			least = min(least, v[P99])
		}
		if least < 0.6*r.Rows[0].Values()[P99] {
			lured++
		}
		if r.Recommended == 0 && !strings.HasPrefix(r.verdict("", ""), "Recommended: the default. ") {
			t.Errorf("it says %q", r.verdict("", ""))
		}
	}
	if lured < 35 || recommended > 3 {
		t.Errorf("of 40 searches %d saw a policy that looked much better, and %d recommended one", lured, recommended)
	}
}

// TestBrittleIsNotRecommended holds that no gain makes up for a scenario in which a policy fails.
func TestBrittleIsNotRecommended(t *testing.T) {
	world := func(undecided float64) Player {
		return surface(func(p policy.Policy, line *policy.Timeline, seed uint64) Outcome {
			v := Values{P50: 1, P99: float64(line.Start(1)) / 1e6, P999: 10, False: 1, Datagrams: 6}
			w := v
			if line.Start(1) < 20*time.Millisecond {
				w[Undecided] = undecided
			}
			return Outcome{v, w}
		})
	}
	for undecided, want := range map[float64]bool{0: true, 0.5: false} {
		r, err := Search(t.Context(), testPlan(t, "latency", Quick), world(undecided))
		if err != nil {
			t.Fatal(err)
		}
		if (r.Recommended > 0) != want {
			t.Errorf("with %v %% undecided while the oldest is dead: row %d, %v", undecided, r.Recommended, r.Rows[r.Recommended].Policy)
		}
	}
	base := Outcome{{P99: 1, Datagrams: 6}, {P99: 1, Datagrams: 6}}
	weights := []int{1, 1}
	for want, v := range map[string]Outcome{
		"0 undecided":  {{Undecided: 0.11}, {}},
		"1 undecided":  {{}, {Undecided: 0.11}},
		"1 excess":     {{}, {Excess: 3.1}},
		"-1 excess":    {{Excess: 0.6}, {Excess: 0.6}},
		"0 false":      {{False: 0.21}, {}},
		"-1 false":     {{}, {False: 2.1}},
		"-1 p99":       {{P99: 2.2}, {P99: 2.2}},
		"-1 datagrams": {{Datagrams: 9.1}, {Datagrams: 9.1}},
	} {
		got := breaches(v, base, weights)
		if len(got) == 0 {
			t.Errorf("%v is within the guards", v)
			continue
		}
		scenario, heading, _ := strings.Cut(want, " ")
		if b := got[0]; b.Measure.Heading() != heading || scenario != map[int]string{-1: "-1", 0: "0", 1: "1"}[b.Scenario] {
			t.Errorf("%v: %+v, want %s", v, got, want)
		}
		if violation(v, base, weights) <= 0 {
			t.Errorf("%v is no violation", v)
		}
	}
	if got := breaches(base, base, weights); got != nil {
		t.Errorf("the default is beyond %+v", got)
	}
}

// TestObjectives holds that each objective's recommendation is better in what it is named after than
// the others', where they are to be had against each other.
func TestObjectives(t *testing.T) {
	world := surface(func(p policy.Policy, line *policy.Timeline, _ uint64) Outcome {
		round := float64(line.Start(1)) / 20e6
		prefer := float64(line.PreferenceEnd(0)) / float64(line.Start(1))
		v := Values{
			P50: 1, P99: 10 * math.Sqrt(round) * (1 + prefer), P999: 20,
			Undecided: 0.04 / float64(1+p.Replays), False: 1 + 0.9*(1-prefer), Datagrams: 4 + float64(p.Replays) + 0.3/round,
		}
		health := v
		health[False] = 0
		return Outcome{health, v}
	})
	best := make(map[string]Values)
	for _, name := range ObjectiveNames() {
		r, err := Search(t.Context(), testPlan(t, name, Thorough), world)
		if err != nil {
			t.Fatal(err)
		}
		best[name] = r.Rows[r.Recommended].Values()
	}
	for name, m := range map[string]Measure{"latency": P99, "availability": Undecided, "correctness": False, "datagrams": Datagrams} {
		for other, v := range best {
			if v[m] < best[name][m]-alikePoints[m] {
				t.Errorf("%s has %s %v, and %s has %v", name, m.Heading(), best[name][m], other, v[m])
			}
		}
	}
	if best["latency"][P99] >= best["datagrams"][P99] {
		t.Errorf("p99 is %v by latency and %v by datagrams", best["latency"][P99], best["datagrams"][P99])
	}
	if _, err := FindObjective("speed"); err == nil || !strings.Contains(err.Error(), "balanced, latency, availability, correctness, datagrams") {
		t.Errorf("an unknown objective: %v", err)
	}
}

func TestFront(t *testing.T) {
	all := []Values{
		{P99: 1, Datagrams: 9},
		{P99: 2, Datagrams: 6},
		{P99: 2, Datagrams: 7},      // the second is better
		{P99: 3, Datagrams: 5},      //
		{P99: 3.02, Datagrams: 5.9}, // the one before it is better, as 3.02 is 3
		{P99: 1.005, Datagrams: 9},  // like the first
	}
	if got, want := front(all), []bool{true, true, false, true, false, true}; !reflect.DeepEqual(got, want) {
		t.Errorf("on the front are %v, want %v", got, want)
	}
}

// TestFrontOfACircle holds that there is a front where each is better than the next by what is no difference
// between neighbors.
func TestFrontOfACircle(t *testing.T) {
	circle := []Values{
		{P50: 100, P99: 101.4, P999: 100.7},
		{P50: 101.4, P99: 100.7, P999: 100},
		{P50: 100.7, P99: 100, P999: 101.4},
		{P50: 110, P99: 110, P999: 110}, // worse than all of them
	}
	if !dominates(circle[0], circle[1]) || !dominates(circle[1], circle[2]) || !dominates(circle[2], circle[0]) {
		t.Fatal("they are no circle")
	}
	if got := front(circle); !reflect.DeepEqual(got, []bool{true, true, true, false}) {
		t.Errorf("on the front are %v", got)
	}
	if got := front(append(circle, Values{P50: 90, P99: 90, P999: 90})); !reflect.DeepEqual(got, []bool{false, false, false, false, true}) {
		t.Errorf("with one that is better than all, on the front are %v", got)
	}
}

// TestSearchIsOneOfItsPlan holds that the same plan gives the same result, another seed another one,
// and that an error of the player ends it.
func TestSearchIsOneOfItsPlan(t *testing.T) {
	play := surface(bowl)
	plan := testPlan(t, "balanced", Quick)
	a, err := Search(t.Context(), plan, play)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Search(t.Context(), plan, play); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("a second search comes to something else: %v", err)
	}
	plan.Seed = 1000
	if b, err := Search(t.Context(), plan, play); err != nil || reflect.DeepEqual(a, b) {
		t.Errorf("another seed comes to the same: %v", err)
	}
	broken := errors.New("broken")
	for at := range 6 {
		calls := 0
		_, err := Search(t.Context(), plan, func(ctx context.Context, trials []Trial) ([]Outcome, error) {
			if calls++; calls > at {
				return nil, broken
			}
			return play(ctx, trials)
		})
		if !errors.Is(err, broken) {
			t.Errorf("broken at call %d: %v", at, err)
		}
	}
}

// TestLittleIsNotWorthAChange holds that a gain is recommended from 5 % of the cost on.
func TestLittleIsNotWorthAChange(t *testing.T) {
	for share, want := range map[float64]string{0.97: "it saves less than 5 %, which is not worth a change", 0.9: ""} {
		r, err := Search(t.Context(), testPlan(t, "balanced", Quick), surface(func(p policy.Policy, line *policy.Timeline, _ uint64) Outcome {
			v := Values{P50: 1, P99: 10, P999: 10, False: 1, Datagrams: 6}
			if p.Unit != policy.Default().Unit || p.Replays != 1 {
				v[Datagrams] *= math.Pow(share, 4) // which the cost takes the fourth root of
			}
			return Outcome{v, v}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if (r.Recommended == 0) != (want != "") || r.Refuted != want || math.Abs(r.Gain-100*(1-share)) > 0.01 {
			t.Errorf("with %v of the cost: row %d, saves %v %%, %q", share, r.Recommended, r.Gain, r.Refuted)
		}
	}
}

// TestCost holds the cost as docs/tuning.md defines it.
func TestCost(t *testing.T) {
	base := Values{P50: 1.95, P99: 9.95, P999: 19.95, Undecided: 0.09, False: 1, Excess: 0.9, Datagrams: 8}
	for name, want := range map[string]struct {
		v    Values
		cost float64 // by balanced, to the power of four
		own  float64 // by latency, to the power of seven
	}{
		"nothing":   {base, 1, 1},
		"p50":       {Values{0.95, 9.95, 19.95, 0.09, 1, 0.9, 8}, math.Pow(0.5, 0.25), 0.5},
		"p99":       {Values{1.95, 4.95, 19.95, 0.09, 1, 0.9, 8}, math.Pow(0.5, 0.5), 0.25},
		"p99.9":     {Values{1.95, 9.95, 9.95, 0.09, 1, 0.9, 8}, math.Pow(0.5, 0.25), 0.5},
		"undecided": {Values{1.95, 9.95, 19.95, 0.04, 1, 0.9, 8}, 0.5, 0.5},
		"wrong":     {Values{1.95, 9.95, 19.95, 0.09, 0.4, 0.5, 8}, 0.5, 0.5},
		"datagrams": {Values{1.95, 9.95, 19.95, 0.09, 1, 0.9, 4}, 0.5, 0.5},
	} {
		for objective, power := range map[string]float64{"balanced": 4, "latency": 7} {
			o, err := FindObjective(objective)
			if err != nil {
				t.Fatal(err)
			}
			cost := want.cost
			if objective == "latency" {
				cost = want.own
			}
			if got := math.Exp(power * o.logCost(want.v, base)); math.Abs(got-cost) > 1e-6 {
				t.Errorf("half of %s costs %v by %s, want %v", name, got, objective, cost)
			}
		}
	}
}
