package simtune

import (
	"fmt"
	"math"
	"strings"
)

// An Objective is what a recommendation is to be good at: how much each group of measures weighs in
// the cost.
type Objective struct {
	Name                                string
	Latency, Undecided, Wrong, Datagram float64
}

var objectives = []Objective{
	{"balanced", 1, 1, 1, 1},
	{"latency", 4, 1, 1, 1},
	{"availability", 1, 4, 1, 1},
	{"correctness", 1, 1, 4, 1},
	{"datagrams", 1, 1, 1, 4},
}

// ObjectiveNames returns the names that [FindObjective] knows.
func ObjectiveNames() []string {
	var names []string
	for _, o := range objectives {
		names = append(names, o.Name)
	}
	return names
}

// FindObjective returns the objective of this name.
func FindObjective(name string) (Objective, error) {
	for _, o := range objectives {
		if o.Name == name {
			return o, nil
		}
	}
	return Objective{}, fmt.Errorf("%q is no objective; there are %s", name, strings.Join(ObjectiveNames(), ", "))
}

// What is below these makes no difference to anybody, and is not to be divided by.
const (
	floorLatency   = 0.05 // ms
	floorUndecided = 0.01 // percent: one in ten thousand
	floorWrong     = 0.1  // percent
)

// logCost is the natural logarithm of what a policy costs, of what base costs: 0 for base itself,
// below 0 for what is better.
func (o *Objective) logCost(v, base Values) float64 {
	ratio := func(of func(Values) float64, floor float64) float64 {
		return math.Log((of(v) + floor) / (of(base) + floor))
	}
	at := func(m Measure) func(Values) float64 { return func(v Values) float64 { return v[m] } }
	latency := ratio(at(P50), floorLatency)/4 + ratio(at(P99), floorLatency)/2 + ratio(at(P999), floorLatency)/4
	wrong := func(v Values) float64 { return v[False] + v[Excess] }
	sum := o.Latency*latency + o.Undecided*ratio(at(Undecided), floorUndecided) +
		o.Wrong*ratio(wrong, floorWrong) + o.Datagram*ratio(at(Datagrams), 1e-9)
	sum /= o.Latency + o.Undecided + o.Wrong + o.Datagram
	// The last digits of a logarithm are not the same on every machine.
	return math.Round(sum*1e9) / 1e9
}

// The guards: how much worse than the default a recommendation may be, whatever else it wins. What
// is in points may be as much worse, and a quarter of the default's besides, since what is far from
// zero varies by itself.
const (
	guardUndecided = 0.1 // percentage points, in each scenario
	guardExcess    = 3.0 // percentage points, in each scenario
	guardExcessAll = 0.5 // percentage points, over all scenarios
	guardFalse     = 1.0 // percentage points, over all scenarios
	guardHealth    = 0.2 // percentage points of false decisions, in health
	guardShare     = 0.25
	guardP99       = 2.0 // times, over all scenarios
	guardDatagrams = 1.5 // times, over all scenarios
)

// guardDecides is how many percent of the requests the default may leave undecided, over all scenarios, and
// still be what decisions are measured by. Beyond, its horizon is too short for the network: who hardly decides
// is hardly wrong, and has not waited for long.
const guardDecides = 1

// A Breach is a guard that a policy is beyond.
type Breach struct {
	Scenario     int // -1 for all of them together
	Measure      Measure
	Value, Bound float64
}

// breaches are the guards that a mean outcome is beyond.
func breaches(o, base Outcome, weights []int) []Breach {
	var all []Breach
	hold := func(scenario int, m Measure, v, bound float64) {
		if v > bound {
			all = append(all, Breach{scenario, m, v, bound})
		}
	}
	points := func(base, guard float64) float64 { return base*(1+guardShare) + guard }
	v, b := weigh(o, weights), weigh(base, weights)
	decides := b[Undecided] <= guardDecides
	for i := range o {
		hold(i, Undecided, o[i][Undecided], points(base[i][Undecided], guardUndecided))
		if decides {
			hold(i, Excess, o[i][Excess], points(base[i][Excess], guardExcess))
		}
	}
	if !decides {
		return all
	}
	hold(0, False, o[0][False], points(base[0][False], guardHealth))
	hold(-1, False, v[False], points(b[False], guardFalse))
	hold(-1, Excess, v[Excess], points(b[Excess], guardExcessAll))
	hold(-1, P99, v[P99], guardP99*(b[P99]+floorLatency))
	hold(-1, Datagrams, v[Datagrams], guardDatagrams*b[Datagrams])
	return all
}

// violation is how far an outcome is beyond the guards, in shares of them; 0 is within.
func violation(o, base Outcome, weights []int) float64 {
	sum := 0.0
	for _, b := range breaches(o, base, weights) {
		sum += min(b.Value/max(b.Bound, 1e-9)-1, 100)
	}
	return sum
}
