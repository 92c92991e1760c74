package reality

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/sim"
)

// seeds are how many runs of the simulator stand for what it says of a scenario.
const seeds = 40

// predict simulates a scenario with the same requests under many seeds.
func predict(s *sim.Scenario, seeds uint64) ([]*outcome, error) {
	s, err := sameRequests(s)
	if err != nil {
		return nil, err
	}
	var all []*outcome
	for seed := range seeds {
		o, err := simulate(s, seed+1)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// A measure is one line of a comparison.
type measure struct {
	scenario, name  string
	simulated, real string
	bound           string // what the real value may be
	agrees          bool
}

// The bounds of durations: the larger of a share of the simulated value and a duration.
const (
	medianShare, medianLeast = 0.15, 500 * time.Microsecond
	p95Share, p95Least       = 0.30, 2 * time.Millisecond
)

// alpha is the chance that a share is called different in one of all the comparisons of the table
// though nothing is; comparisons is about how many there are.
const (
	alpha       = 0.01
	comparisons = 80
)

// compare says measure by measure whether a real run is one that the simulator predicts.
func compare(name string, simulated []*outcome, seen *outcome) []measure {
	pooled := merge(simulated)
	all := []measure{
		compareTime(name, "median", pooled.P50, seen.P50, medianShare, medianLeast),
		compareTime(name, "p95", pooled.P95, seen.P95, p95Share, p95Least),
	}
	share := func(what string, part func(*outcome) (k, n int)) {
		all = append(all, compareShare(name, what, simulated, seen, part))
	}
	share("available", func(o *outcome) (int, int) { return o.decided(), o.Submitted })
	share("timed out", func(o *outcome) (int, int) { return o.TimedOut, o.Submitted })
	share("granted", func(o *outcome) (int, int) { return o.Granted, o.decided() })
	for server := range seen.By {
		pooled.By[server] += 0 // no simulated run has seen it
	}
	for _, server := range slices.Sorted(maps.Keys(pooled.By)) {
		share("decided by "+server, func(o *outcome) (int, int) { return o.By[server], o.decided() })
	}
	share("decided after a replay", func(o *outcome) (int, int) { return o.Replayed, o.decided() })
	sent := func(kind core.SendKind) func(*outcome) (int, int) {
		return func(o *outcome) (int, int) { return int(o.Sent[kind]), int(o.Sent[core.SendFirst]) }
	}
	share("replayed to a server", sent(core.SendReplay))
	share("delivered to a server", sent(core.SendCompletion))
	return all
}

func compareTime(scenario, name string, simulated, seen time.Duration, share float64, least time.Duration) measure {
	within := max(least, time.Duration(share*float64(simulated)))
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
	return measure{
		scenario, name, ms(simulated), ms(seen),
		ms(simulated-within) + " to " + ms(simulated+within), (seen - simulated).Abs() <= within,
	}
}

// compareShare takes a real share as agreeing if Wilson's intervals of both shares meet, or if it lies
// in the interval in which the next run of the simulator would, by the spread over its seeds: requests
// of one run may fare alike. Each request that the machine disturbed may have gone either way.
func compareShare(scenario, name string, simulated []*outcome, seen *outcome, part func(*outcome) (k, n int)) measure {
	z := normal(1 - alpha/comparisons/2)
	var shares []float64
	pooled, of := 0, 0
	for _, o := range simulated {
		k, n := part(o)
		shares = append(shares, ratio(k, n))
		pooled, of = pooled+k, of+n
	}
	low, high := wilson(pooled, of, z)
	mean, sd := spread(shares)
	half := student(z, len(shares)-1) * sd * math.Sqrt(1+1/float64(len(shares)))
	k, n := part(seen)
	fits := func(k int) bool {
		from, to := wilson(k, n, z)
		return from <= high && low <= to || math.Abs(ratio(k, n)-mean) <= half
	}
	first, last := 0, n
	for first < n && !fits(first) {
		first++
	}
	for last > first && !fits(last) {
		last--
	}
	disturbed := int(math.Ceil(ratio(seen.Disturbed*n, seen.Submitted)))
	first, last = max(0, first-disturbed), min(n, last+disturbed)
	show := func(k, n int) string { return fmt.Sprintf("%.2f %%", 100*ratio(k, n)) }
	return measure{scenario, name, show(pooled, of), show(k, n), show(first, n) + " to " + show(last, n), first <= k && k <= last}
}

func ratio(k, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(k) / float64(n)
}

// wilson returns Wilson's score interval of k out of n.
func wilson(k, n int, z float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p, m := ratio(k, n), float64(n)
	middle := (p + z*z/2/m) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/4/m/m)
	return max(0, middle-half), min(1, middle+half)
}

// spread returns the mean and the standard deviation of a sample.
func spread(xs []float64) (mean, sd float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	if len(xs) < 2 {
		return mean, 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum / float64(len(xs)-1))
}

// normal returns the quantile of the normal distribution.
func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// student returns the quantile of Student's distribution with n degrees of freedom whose
// normal one is z (Cornish and Fisher's expansion).
func student(z float64, n int) float64 {
	v, square := float64(n), z*z
	return z * (1 + (square+1)/(4*v) + (5*square*square+16*square+3)/(96*v*v))
}
