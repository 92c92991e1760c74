package simcompare

// Direction is which values of a scalar are better.
type Direction int8

// The directions. Neither says more about the scenario than about how good a policy is.
const (
	Neither Direction = iota
	Lower
	Higher
)

// String returns an arrow, or nothing.
func (d Direction) String() string {
	switch d {
	case Lower:
		return "↓"
	case Higher:
		return "↑"
	}
	return ""
}

// neither are the scalars without a better.
var neither = map[string]bool{
	"requests": true, "granted_percent": true, "fallback_percent": true,
	"from_memory": true, "dedup_window_p50_percent": true, "dedup_window_p99_percent": true, "dedup_window_max_percent": true,
	"work_rejected": true, "steered": true, "reports_per_decision": true,
	"late_answers_percent": true, "duplicate_answers_percent": true, "invalid_answers_percent": true, "lost": true,
}

// higher are those of which more is better.
var higher = map[string]bool{
	"availability_percent": true, "lowest_availability_percent": true, "health_correct_percent": true,
	"goodput_percent": true, "work_completed": true,
}

// Better returns which values of a scalar are better.
func Better(scalar string) Direction {
	switch {
	case neither[scalar]:
		return Neither
	case higher[scalar]:
		return Higher
	}
	return Lower
}

// chosen are the scalars that a table shows when it is not to show all.
var chosen = map[string]bool{
	"availability_percent": true, "lowest_availability_percent": true, "fallback_percent": true,
	"latency_p50_ms": true, "latency_p99_ms": true, "latency_p99_99_ms": true,
	"false_grants_percent": true, "false_denials_percent": true, "excess_percent": true,
	"disagreed_percent": true, "convergence_ms": true,
	"goodput_percent": true, "work_latency_p99_ms": true,
	"datagrams_per_decision": true, "replays_per_decision": true, "completion_deliveries_per_decision": true,
}
