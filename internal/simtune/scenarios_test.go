package simtune

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func network(change func(*Network)) Network {
	n := Network{RTT: sim.Lognormal(2*time.Millisecond, 6*time.Millisecond), Servers: 3, MaxHorizon: 300 * time.Millisecond}
	if change != nil {
		change(&n)
	}
	return n
}

// shorten leaves two scenarios, of a second each.
func shorten(s *Scenarios) {
	s.All, s.Weights = s.All[:2], s.Weights[:2]
	for _, scenario := range s.All {
		scenario.Length = time.Second
	}
}

// TestOneWay holds that a client sees the round trips that were given.
func TestOneWay(t *testing.T) {
	for _, rtt := range []sim.Dist{
		sim.Constant(3 * time.Millisecond), sim.Uniform(time.Millisecond, 9*time.Millisecond), sim.Lognormal(30*time.Millisecond, 36*time.Millisecond),
		sim.Empirical([]time.Duration{5, 7, 5000}, []uint64{10, 1, 1}),
	} {
		there, back := oneWay(rtt)
		for _, word := range []uint64{1 << 56, 1 << 62, 1 << 63, 3 << 62, 1<<64 - 1<<56} {
			got, want := there.At(word)+back.At(0), rtt.At(word)
			if d := got - want; d.Abs() > want/100 {
				t.Errorf("%v: the quantile %x is %v, want %v", rtt, word, got, want)
			}
		}
		if least := there.At(0); back.At(1<<63) > least+1 {
			t.Errorf("%v: back takes %v and there at least %v", rtt, back.At(0), least)
		}
	}
}

// TestScenariosHoldWhatAPolicyIsToBear holds that the list has every fault that it promises, that
// health has none, and that health counts as much as all others.
func TestScenariosHoldWhatAPolicyIsToBear(t *testing.T) {
	s, err := NewScenarios(network(func(n *Network) { n.Loss = 10_000 }))
	if err != nil {
		t.Fatal(err)
	}
	if s.All[0].Name != "health" || s.All[0].Faults != nil {
		t.Errorf("the first is %s with %d faults", s.All[0].Name, len(s.All[0].Faults))
	}
	others := 0
	kinds := make(map[sim.FaultKind]bool)
	for i, scenario := range s.All[1:] {
		others += s.Weights[i+1]
		if len(scenario.Faults) == 0 {
			t.Errorf("%s has no fault", scenario.Name)
		}
		for _, f := range scenario.Faults {
			kinds[f.Kind] = true
			if f.For == 0 || f.At+f.For > scenario.Length {
				t.Errorf("%s: a fault at %v for %v in %v", scenario.Name, f.At, f.For, scenario.Length)
			}
		}
		for _, l := range scenario.Links {
			if l.Loss != 10_000 {
				t.Errorf("%s: a link loses %d in a million", scenario.Name, l.Loss)
			}
		}
	}
	if others != s.Weights[0] {
		t.Errorf("health counts %d and the others %d", s.Weights[0], others)
	}
	for _, kind := range []sim.FaultKind{sim.FaultKill, sim.FaultDelay, sim.FaultPartition, sim.FaultLoss, sim.FaultPause} {
		if !kinds[kind] {
			t.Errorf("there is no fault of kind %v", kind)
		}
	}
	long := policy.Default()
	long.Unit = 101 * time.Millisecond
	if !s.Fits(policy.Default()) || s.Fits(long) {
		t.Error("a policy fits though its horizon is above the quota, or does not though it is below")
	}
}

func TestNetworkIsChecked(t *testing.T) {
	for want, change := range map[string]func(*Network){
		"1 servers: give 2 to 9":      func(n *Network) { n.Servers = 1 },
		"10 servers: give 2 to 9":     func(n *Network) { n.Servers = 10 },
		"horizon of 50ms: give 60ms":  func(n *Network) { n.MaxHorizon = 50 * time.Millisecond },
		"in steps of 10 ms":           func(n *Network) { n.MaxHorizon = 65 * time.Millisecond },
		"loss of 60 %: give at most":  func(n *Network) { n.Loss = 600_000 },
		"take 300ms or more, and no":  func(n *Network) { n.RTT = sim.Constant(300 * time.Millisecond) },
		"a duration is from 0 to 24h": func(n *Network) { n.RTT = sim.Constant(-1) },
		"median is above the 99th":    func(n *Network) { n.RTT = sim.Lognormal(2, 1) },
	} {
		if _, err := NewScenarios(network(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, change := range []func(*Network){
		func(n *Network) { n.Servers = 2 }, func(n *Network) { n.Servers = 9 }, func(n *Network) { n.MaxHorizon = 2 * time.Second },
		func(n *Network) { n.RTT = sim.Constant(0) }, func(n *Network) { n.MaxHorizon = 60 * time.Millisecond },
	} {
		if _, err := NewScenarios(network(change)); err != nil {
			t.Error(err)
		}
	}
}

// TestPlayIsTheSameOnAnyNumberOfProcessors holds that outcomes depend on trials alone, and come in
// their order, and that progress goes through all of it.
func TestPlayIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	s, err := NewScenarios(network(nil))
	if err != nil {
		t.Fatal(err)
	}
	shorten(s)
	var trials []Trial
	for seed := range uint64(together/2 + 1) {
		trials = append(trials, Trial{policy.Default(), seed}, Trial{policy.FastestValid(), seed})
	}
	var last time.Duration
	one, err := s.Play(1, func(played time.Duration) {
		if played < last {
			t.Errorf("progress goes back from %v to %v", last, played)
		}
		last = played
	})(t.Context(), trials)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * time.Second * time.Duration(len(trials)); last != want {
		t.Errorf("progress ends at %v of %v", last, want)
	}
	four, err := s.Play(4, nil)(t.Context(), trials)
	if err != nil || !reflect.DeepEqual(one, four) {
		t.Errorf("four at a time come to something else than one: %v", err)
	}
	backwards := slices.Clone(trials)
	slices.Reverse(backwards)
	again, err := s.Play(2, nil)(t.Context(), backwards)
	slices.Reverse(again)
	if err != nil || !reflect.DeepEqual(one, again) {
		t.Errorf("in another order they come to something else: %v", err)
	}
	if reflect.DeepEqual(one[0], one[1]) || reflect.DeepEqual(one[0], one[2]) {
		t.Error("policies, or seeds, make no difference")
	}
	if v := one[0][0]; v[Undecided] != 0 || v[False] != 0 || v[P50] < 1.5 || v[P50] > 3 || v[Datagrams] < 6 || v[Datagrams] > 12 {
		t.Errorf("the default in health comes to %v", v)
	}
}

// TestSearchIsTheSameOnAnyNumberOfProcessors holds that a whole search is.
func TestSearchIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	s, err := NewScenarios(network(nil))
	if err != nil {
		t.Fatal(err)
	}
	shorten(s)
	plan := testPlan(t, "balanced", Budget{
		Screen: 9, Beam: 1, Walk: 5, WalkSeeds: 1, Finalists: 2, Select: 2, Confirm: 2, Contenders: 1, Spread: 2,
	})
	plan.Scenarios, plan.Weights, plan.Fits = s.Names(), s.Weights, s.Fits
	one, err := Search(t.Context(), plan, s.Play(1, nil))
	if err != nil {
		t.Fatal(err)
	}
	if four, err := Search(t.Context(), plan, s.Play(4, nil)); err != nil || !reflect.DeepEqual(one, four) {
		t.Errorf("with four at a time it comes to something else: %v", err)
	}
}

// TestNoDecisionIsNoBargain holds that a policy which decides nothing has not the best of all values.
func TestNoDecisionIsNoBargain(t *testing.T) {
	s, err := NewScenarios(network(func(n *Network) { n.RTT = sim.Constant(100 * time.Millisecond) }))
	if err != nil {
		t.Fatal(err)
	}
	s.All = s.All[:1]
	all, err := s.Play(1, nil)(t.Context(), []Trial{{policy.Default(), 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := Values{P50: 300, P99: 300, P999: 300, Undecided: 100, False: noneRight, Datagrams: noneCheap}
	if all[0][0] != want {
		t.Errorf("without a decision it is %v, want %v", all[0][0], want)
	}
}

// TestFarServers holds that where the default decides nothing, or next to nothing, what is recommended decides.
func TestFarServers(t *testing.T) {
	for _, rtt := range []sim.Dist{
		sim.Lognormal(150*time.Millisecond, 180*time.Millisecond),
		sim.Lognormal(100*time.Millisecond, 150*time.Millisecond),
	} {
		n := network(func(n *Network) { n.RTT = rtt })
		s, err := NewScenarios(n)
		if err != nil {
			t.Fatal(err)
		}
		shorten(s)
		plan := testPlan(t, "balanced", Quick)
		plan.Scenarios, plan.Weights, plan.Fits = s.Names(), s.Weights, s.Fits
		r, err := Search(t.Context(), plan, s.Play(0, nil))
		if err != nil {
			t.Fatal(err)
		}
		v := r.Rows[r.Recommended].Values()
		if r.Recommended == 0 || v[Undecided] > 5 {
			t.Errorf("%v: row %d is recommended, which leaves %v %% undecided; the default %v %%", rtt, r.Recommended, v[Undecided], r.Rows[0].Values()[Undecided])
		}
	}
}
