package sim

import (
	"math"
	"slices"
)

// Spread is a scalar over several runs of a scenario under different seeds.
type Spread struct {
	Name string  `json:"name"`
	Runs int     `json:"runs"` // that have a value; without any, all others are 0
	Mean float64 `json:"mean"`
	// Half is half the width of the 95 % confidence interval around the mean, by Student's t: 0 for
	// fewer than two runs, of which nothing can be said.
	Half float64 `json:"half_width_95"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// Seeds are the measures of several runs of a scenario together.
type Seeds struct {
	Runs     int       `json:"runs"`
	Scalars  []Spread  `json:"scalars"`  // in the order of Scalars
	Latency  Latencies `json:"latency"`  // of all runs
	Timeline Timeline  `json:"timeline"` // of all runs, bin by bin
}

// Summarize puts runs of one scenario, measured in bins of one length, together. It changes none
// of them.
func Summarize(runs []*Measures) *Seeds {
	all := &Seeds{Runs: len(runs)}
	for _, s := range Scalars() {
		var values []float64
		for _, m := range runs {
			if v, ok := s.Value(m); ok {
				values = append(values, v)
			}
		}
		all.Scalars = append(all.Scalars, SpreadOf(s.Name, values))
	}
	for _, m := range runs {
		l := &m.Latency
		all.Latency.Decided.Merge(&l.Decided)
		all.Latency.Granted.Merge(&l.Granted)
		all.Latency.Rejected.Merge(&l.Rejected)
		all.Latency.Oldest.Merge(&l.Oldest)
		all.Latency.Fallback.Merge(&l.Fallback)
		all.Latency.TimedOut.Merge(&l.TimedOut)
		all.Timeline.add(&m.Timeline)
	}
	return all
}

func (t *Timeline) add(o *Timeline) {
	t.Bin = o.Bin
	for len(t.Bins) < len(o.Bins) {
		t.Bins = append(t.Bins, Bin{})
	}
	for i := range o.Bins {
		a, b := &t.Bins[i], &o.Bins[i]
		a.Submitted += b.Submitted
		a.Decided += b.Decided
		a.False += b.False
		a.Compared += b.Compared
		a.Disagreed += b.Disagreed
	}
}

// SpreadOf returns the spread of a number over runs, such as how much a scalar differs between two
// policies under the same seed. Values are summed in their order and products are rounded before they
// are added, so that it is the same on every machine.
func SpreadOf(name string, values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{Name: name}
	}
	s := Spread{Name: name, Runs: n, Min: slices.Min(values), Max: slices.Max(values)}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	s.Mean = sum / float64(n)
	if n == 1 {
		return s
	}
	squares := 0.0
	for _, v := range values {
		off := v - s.Mean
		squares += float64(off * off)
	}
	s.Half = student95(n-1) * math.Sqrt(squares/float64(n-1)/float64(n))
	return s
}

// studentTable is the 0.975 quantile of Student's t with 1 to 30 degrees of freedom.
var studentTable = [...]float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// student95 returns the quantile for so many degrees of freedom, above 30 that of the next lower
// number in the usual table, so that an interval is never too narrow.
func student95(freedom int) float64 {
	switch {
	case freedom <= len(studentTable):
		return studentTable[freedom-1]
	case freedom < 40:
		return studentTable[len(studentTable)-1]
	case freedom < 60:
		return 2.021
	case freedom < 120:
		return 2.000
	}
	return 1.980
}
