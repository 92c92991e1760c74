package simtune

import (
	"github.com/weirhq/weir/sim"
)

// A Measure is one of the numbers that policies are compared by. Of all of them less is better.
type Measure int

// The measures. docs/tuning.md defines them by the scalars of docs/evaluator.md.
const (
	P50       Measure = iota // decision latency, ms
	P99                      // the same
	P999                     // the same, 99.9th percentile
	Undecided                // requests without a decision, in percent of those submitted
	False                    // false grants and false denials, in percent of the decided requests
	Excess                   // tokens granted beyond limits, in percent of all that were granted
	Datagrams                // for each decided request
	measures
)

var measureTexts = [measures]struct{ name, heading, unit string }{
	{"latency_p50_ms", "p50", "ms"},
	{"latency_p99_ms", "p99", "ms"},
	{"latency_p99_9_ms", "p99.9", "ms"},
	{"undecided_percent", "undecided", "%"},
	{"false_percent", "false", "%"},
	{"excess_percent", "excess", "%"},
	{"datagrams_per_decision", "datagrams", ""},
}

// Measures returns all of them, in their order.
func Measures() []Measure {
	all := make([]Measure, measures)
	for i := range all {
		all[i] = Measure(i)
	}
	return all
}

// Name is the measure's name in JSON.
func (m Measure) Name() string { return measureTexts[m].name }

// Heading is its name in tables.
func (m Measure) Heading() string { return measureTexts[m].heading }

// Unit is ms, % or nothing.
func (m Measure) Unit() string { return measureTexts[m].unit }

// Values are the measures of one run, or a mean of them.
type Values [measures]float64

// An Outcome is what one policy came to with one seed: values by scenario.
type Outcome []Values

// weigh returns the mean of an outcome over its scenarios.
func weigh(o Outcome, weights []int) Values {
	var sum Values
	all := 0
	for i, v := range o {
		for m := range v {
			sum[m] += float64(v[m] * float64(weights[i]))
		}
		all += weights[i]
	}
	for m := range sum {
		sum[m] /= float64(all)
	}
	return sum
}

// scalars are the evaluator's scalars that values are made of.
var scalars = func() map[string]func(*sim.Measures) (float64, bool) {
	byName := make(map[string]func(*sim.Measures) (float64, bool))
	for _, s := range sim.Scalars() {
		byName[s.Name] = s.Value
	}
	return byName
}()

// With no decision at all there is nothing right, and nothing cheap.
const (
	noneRight = 100  // percent false
	noneCheap = 1000 // datagrams
)

// valuesOf reads the measures of a run. Without a single decision the latency is the longest that may be
// tried: that a policy gives up sooner is no merit.
func valuesOf(m *sim.Measures, longest float64) Values {
	get := func(name string, none float64) float64 {
		if v, ok := scalars[name](m); ok {
			return v
		}
		return none
	}
	return Values{
		P50: get("latency_p50_ms", longest), P99: get("latency_p99_ms", longest), P999: get("latency_p99_9_ms", longest),
		Undecided: 100 - get("availability_percent", 100),
		False:     get("false_grants_percent", noneRight) + get("false_denials_percent", 0),
		Excess:    get("excess_percent", 0),
		Datagrams: get("datagrams_per_decision", noneCheap),
	}
}
