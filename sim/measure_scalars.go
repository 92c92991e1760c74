package sim

import "time"

// A Scalar is a number that a run comes to, for tables and comparisons.
type Scalar struct {
	Name string // stable; its unit is its last word, unless it is a plain number
	Doc  string // what it is, in one line
	// Value returns it, and false if the run has none: nothing was steered, nothing failed.
	Value func(*Measures) (float64, bool)
}

// Scalars returns all scalars in a fixed order. docs/evaluator.md lists them, too.
func Scalars() []Scalar {
	return append(append(append(append([]Scalar(nil),
		decisionScalars...), correctnessScalars...), serverScalars...), pathScalars...)
}

var decisionScalars = []Scalar{
	{"requests", "logical requests that were submitted", countOf(func(m *Measures) uint64 { return m.Requests.Submitted })},
	{"availability_percent", "requests that were decided, of those submitted", ofSubmitted(func(m *Measures) uint64 { return m.Requests.Decided() })},
	{"refused_percent", "requests that their client refused at once, of those submitted", ofSubmitted(func(m *Measures) uint64 { return m.Requests.Refused })},
	{"timed_out_percent", "requests that timed out, of those submitted", ofSubmitted(func(m *Measures) uint64 { return m.Requests.TimedOut })},
	{"send_failed_percent", "requests that could not be sent, of those submitted", ofSubmitted(func(m *Measures) uint64 { return m.Requests.SendFailed })},
	{"granted_percent", "requests that were granted, of those decided", ofDecided(func(m *Measures) uint64 { return m.Requests.Granted })},
	{"fallback_percent", "requests that another server than the oldest of those asked decided, of those decided", ofDecided(func(m *Measures) uint64 { return uint64(m.Latency.Fallback.Count()) })},
	{"latency_mean_ms", "time from submit to decision, mean", meanOf(decidedLatency)},
	{"latency_p50_ms", "the same, median", quantileOf(decidedLatency, 500_000)},
	{"latency_p90_ms", "the same, 90th percentile", quantileOf(decidedLatency, 900_000)},
	{"latency_p99_ms", "the same, 99th percentile", quantileOf(decidedLatency, 990_000)},
	{"latency_p99_9_ms", "the same, 99.9th percentile", quantileOf(decidedLatency, 999_000)},
	{"latency_p99_99_ms", "the same, 99.99th percentile", quantileOf(decidedLatency, 999_900)},
	{"latency_max_ms", "the same, maximum", quantileOf(decidedLatency, 1_000_000)},
	{"granted_latency_p99_ms", "time from submit to decision of granted requests, 99th percentile", quantileOf(func(m *Measures) *Histogram { return &m.Latency.Granted }, 990_000)},
	{"rejected_latency_p99_ms", "the same of rejected requests", quantileOf(func(m *Measures) *Histogram { return &m.Latency.Rejected }, 990_000)},
	{"oldest_latency_p99_ms", "the same of requests that the oldest server decided", quantileOf(func(m *Measures) *Histogram { return &m.Latency.Oldest }, 990_000)},
	{"fallback_latency_p99_ms", "the same of requests that another server decided", quantileOf(func(m *Measures) *Histogram { return &m.Latency.Fallback }, 990_000)},
	{"lowest_availability_percent", "the least availability of a bin in the wake of a fault", overFaults(func(e *FaultEffect) float64 { return float64(1_000_000-e.Lowest) / 1e4 }, func(v float64) float64 { return 100 - v })},
	{"recovery_ms", "time from a fault's beginning until availability stays at 99.9 % or more, the longest", overFaults(func(e *FaultEffect) float64 { return millis(int64(e.Recovery)) }, asIs)},
	{"dip_undecided_percent", "undecided requests of those submitted until recovery, of all faults", func(m *Measures) (float64, bool) {
		var lost, submitted uint64
		for i := range m.Faults {
			lost += m.Faults[i].Lost
			submitted += m.Faults[i].Submitted
		}
		return percent(lost, submitted)
	}},
}

var correctnessScalars = []Scalar{
	{"health_correct_percent", "decisions like the arrival-order oracle's, of requests in health", func(m *Measures) (float64, bool) {
		return percent(m.Arrival.HealthJudged-m.Arrival.HealthFalse, m.Arrival.HealthJudged)
	}},
	{"false_grants", "requests granted that the arrival-order oracle rejects", countOf(func(m *Measures) uint64 { return m.Arrival.FalseGrant })},
	{"false_denials", "requests rejected that the arrival-order oracle grants", countOf(func(m *Measures) uint64 { return m.Arrival.FalseDenial })},
	{"false_grants_percent", "false grants of the decided requests", func(m *Measures) (float64, bool) { return percent(m.Arrival.FalseGrant, m.Arrival.Judged) }},
	{"false_denials_percent", "false denials of the decided requests", func(m *Measures) (float64, bool) { return percent(m.Arrival.FalseDenial, m.Arrival.Judged) }},
	{"disagreed_false_percent", "false grants and denials, of decided requests about which servers disagreed", func(m *Measures) (float64, bool) { return percent(m.Arrival.SplitFalse, m.Arrival.SplitJudged) }},
	{"submit_false_grants_percent", "requests granted that the submit-order oracle rejects, of those decided", func(m *Measures) (float64, bool) { return percent(m.Submit.FalseGrant, m.Submit.Judged) }},
	{"submit_false_denials_percent", "requests rejected that the submit-order oracle grants, of those decided", func(m *Measures) (float64, bool) { return percent(m.Submit.FalseDenial, m.Submit.Judged) }},
	{"net_mean_tokens", "net tokens of a bucket and window, mean of absolute values", func(m *Measures) (float64, bool) { return ratio(m.Net.Absolute, m.Net.Windows) }},
	{"net_mean_percent", "the same in percent of the limit", netMeanPercent},
	{"net_max_tokens", "net tokens of a bucket and window, greatest absolute value", func(m *Measures) (float64, bool) { return float64(m.Net.Max), m.Net.Windows > 0 }},
	{"net_max_percent", "the same in percent of the limit", netMaxPercent},
	{"excess_tokens", "tokens granted beyond limits by all servers together", countOf(func(m *Measures) uint64 { return m.Over.Excess })},
	{"excess_percent", "the same of all tokens granted", func(m *Measures) (float64, bool) { return percent(m.Over.Excess, m.Over.Granted) }},
	{"worst_window_percent", "how far the fullest window is over its limit, of that", func(m *Measures) (float64, bool) { return float64(m.Over.WorstPPM) / 1e4, m.Over.Granted > 0 }},
	{"executed_again", "executions of an identity by a server that had executed it before", countOf(func(m *Measures) uint64 { return m.Executed.Again })},
	{"executed_again_tokens", "tokens that those granted", countOf(func(m *Measures) uint64 { return m.Executed.AgainTokens })},
	{"undecided_consumed_tokens", "tokens of undecided requests that a server granted", countOf(func(m *Measures) uint64 { return m.Executed.ErrorTokens })},
	{"rejected_consumed_tokens", "tokens of rejected requests that a server granted", countOf(func(m *Measures) uint64 { return m.Executed.DeniedTokens })},
	{"disagreed_percent", "requests about which two servers disagreed, of those that two executed", func(m *Measures) (float64, bool) { return percent(m.Disagree.Disagreed, m.Disagree.Compared) }},
	{"convergence_ms", "time from a fault's end to the last disagreement, the longest", overFaults(func(e *FaultEffect) float64 { return millis(int64(e.Convergence)) }, asIs)},
}

var serverScalars = []Scalar{
	{"from_memory", "repeats that servers answered from memory", countOf(func(m *Measures) uint64 { return m.Dedup.FromMemory })},
	{"dedup_window_p50_percent", "lag of a server's last copy of a request behind the first, of the dedup TTL, median", windowShare(500_000)},
	{"dedup_window_p99_percent", "the same, 99th percentile", windowShare(990_000)},
	{"dedup_window_max_percent", "the same, maximum", windowShare(1_000_000)},
	{"dropped", "datagrams that servers dropped by a verdict", countOf(func(m *Measures) uint64 { return m.Dedup.Verdicts.drops() })},
	{"dropped_late", "datagrams dropped because they had waited longer than their dedup TTL", countOf(func(m *Measures) uint64 { return m.Dedup.Late })},
	{"degraded", "identities that servers forgot early for want of room", countOf(func(m *Measures) uint64 { return m.Dedup.Degraded })},
	{"queue_p99", "datagrams in a receive queue at an arrival, 99th percentile", func(m *Measures) (float64, bool) { return float64(m.Queue.Quantile(990_000)), m.Queue.Count() > 0 }},
	{"queue_max", "the same, maximum", func(m *Measures) (float64, bool) { return float64(m.Queue.Max()), m.Queue.Count() > 0 }},
	{"goodput_percent", "work done below its guard's threshold, of what services can do", goodput},
	{"work_completed", "pieces of work that services completed", sumOf(func(u *ServiceUse) uint64 { return u.Completed })},
	{"work_refused", "pieces of work that found no place", sumOf(func(u *ServiceUse) uint64 { return u.Refused })},
	{"work_rejected", "requests for work that were rejected", sumOf(func(u *ServiceUse) uint64 { return u.Rejected })},
	{"idle_seconds", "seconds in which a service was given nothing", sumOf(func(u *ServiceUse) uint64 { return u.Idle })},
	{"work_latency_p50_ms", "time that work took, its wait included, median", workLatency(500_000)},
	{"work_latency_p99_ms", "the same, 99th percentile", workLatency(990_000)},
}

var pathScalars = []Scalar{
	{"datagrams_per_decision", "datagrams sent, answers and reports included, for each decided request", perDecision(false, (*Datagrams).sum)},
	{"first_sends_per_decision", "first sends for each decided request", perDecision(false, func(d *Datagrams) uint64 { return d.First })},
	{"replays_per_decision", "replays for each decided request", perDecision(false, func(d *Datagrams) uint64 { return d.Replay })},
	{"completion_deliveries_per_decision", "completion deliveries for each decided request", perDecision(false, func(d *Datagrams) uint64 { return d.Completion })},
	{"answers_per_decision", "answers that servers sent, for each decided request", perDecision(false, func(d *Datagrams) uint64 { return d.Answer })},
	{"reports_per_decision", "datagrams of reports for each decided request", perDecision(false, func(d *Datagrams) uint64 { return d.Report })},
	{"health_datagrams_per_decision", "datagrams sent for each decided request, in health", perDecision(true, (*Datagrams).sum)},
	{"health_replays_per_decision", "replays for each decided request, in health", perDecision(true, func(d *Datagrams) uint64 { return d.Replay })},
	{"health_completion_deliveries_per_decision", "completion deliveries for each decided request, in health", perDecision(true, func(d *Datagrams) uint64 { return d.Completion })},
	{"steered", "ports changed as an answer advised", func(m *Measures) (float64, bool) { return float64(m.Steering.Applied.Count()), true }},
	{"steering_p50_ms", "time from advice to the first send from the new port, median", quantileOf(steeringLatency, 500_000)},
	{"steering_p99_ms", "the same, 99th percentile", quantileOf(steeringLatency, 990_000)},
	{"steering_max_ms", "the same, maximum", quantileOf(steeringLatency, 1_000_000)},
	{"late_answers_percent", "valid answers that came after the request had ended, of the answers that arrived", ofAnswers(func(v *ClientVerdicts) uint64 { return v.late() })},
	{"duplicate_answers_percent", "further answers of a server, of the answers that arrived", ofAnswers(func(v *ClientVerdicts) uint64 { return v.duplicate() })},
	{"invalid_answers_percent", "answers that were not valid, of the answers that arrived", ofAnswers(func(v *ClientVerdicts) uint64 { return v.invalid() })},
	{"contradictory", "requests with valid answers of both outcomes", countOf(func(m *Measures) uint64 { return m.Answers.Contradictory })},
	{"lost", "datagrams and answers that did not arrive", countOf(func(m *Measures) uint64 { return m.Losses.Requests.sum() + m.Losses.Answers.sum() })},
}

func countOf(of func(*Measures) uint64) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) { return float64(of(m)), true }
}

func ratio(a, b uint64) (float64, bool) {
	if b == 0 {
		return 0, false
	}
	return float64(a) / float64(b), true
}

func percent(a, b uint64) (float64, bool) { return ratio(100*a, b) }

func millis(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }

func asIs(v float64) float64 { return v }

func ofSubmitted(of func(*Measures) uint64) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) { return percent(of(m), m.Requests.Submitted) }
}

func ofDecided(of func(*Measures) uint64) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) { return percent(of(m), m.Requests.Decided()) }
}

func decidedLatency(m *Measures) *Histogram  { return &m.Latency.Decided }
func steeringLatency(m *Measures) *Histogram { return &m.Steering.Applied }

func quantileOf(of func(*Measures) *Histogram, ppm PerMillion) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) { h := of(m); return millis(h.Quantile(ppm)), h.Count() > 0 }
}

func meanOf(of func(*Measures) *Histogram) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) { h := of(m); return millis(h.Mean()), h.Count() > 0 }
}

// overFaults returns the greatest of what faults did, in the end turned into what is shown.
func overFaults(of func(*FaultEffect) float64, show func(float64) float64) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) {
		worst := 0.0
		for i := range m.Faults {
			worst = max(worst, of(&m.Faults[i]))
		}
		return show(worst), len(m.Faults) > 0
	}
}

func netMeanPercent(m *Measures) (float64, bool) {
	sum := 0.0
	for _, r := range m.Net.Limits {
		if r.Limit > 0 {
			sum += float64(float64(100*r.Absolute) / float64(r.Limit))
		}
	}
	return sum / float64(max(1, m.Net.Windows)), m.Net.Windows > 0
}

func netMaxPercent(m *Measures) (float64, bool) {
	most := 0.0
	for _, r := range m.Net.Limits {
		if r.Limit > 0 {
			most = max(most, float64(100*r.Max)/float64(r.Limit))
		}
	}
	return most, m.Net.Windows > 0
}

func windowShare(ppm PerMillion) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) {
		return float64(m.Dedup.Window.Quantile(ppm)) / 1e4, m.Dedup.Window.Count() > 0
	}
}

func sumOf(of func(*ServiceUse) uint64) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) {
		n := uint64(0)
		for i := range m.Services {
			n += of(&m.Services[i])
		}
		return float64(n), len(m.Services) > 0
	}
}

// goodput returns the time that places were taken by work that came out good, in percent of all
// their time, of services with a bound. Good work takes a place as long as all work does, on average.
func goodput(m *Measures) (float64, bool) {
	good, capacity := 0.0, 0.0
	for i := range m.Services {
		u := &m.Services[i]
		if u.Capacity > 0 {
			capacity += float64(u.Capacity)
			good += float64(float64(u.Busy) * (float64(u.Good) / float64(max(1, u.Completed))))
		}
	}
	if capacity == 0 {
		return 0, false
	}
	return float64(100*good) / capacity, true
}

func workLatency(ppm PerMillion) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) {
		var all Histogram
		for i := range m.Services {
			all.Merge(&m.Services[i].Latency)
		}
		return millis(all.Quantile(ppm)), all.Count() > 0
	}
}

func perDecision(health bool, of func(*Datagrams) uint64) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) {
		d := &m.Datagrams
		if health {
			d = &m.Health
		}
		return ratio(of(d), d.Decided)
	}
}

func ofAnswers(of func(*ClientVerdicts) uint64) func(*Measures) (float64, bool) {
	return func(m *Measures) (float64, bool) {
		v := &m.Answers.Verdicts
		all := uint64(0)
		for _, n := range v {
			all += n
		}
		return percent(of(v), all)
	}
}
