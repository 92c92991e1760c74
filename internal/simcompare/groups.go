package simcompare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/sim"
)

// A Group is scalars that tell of one thing, the important ones first.
type Group struct {
	Name    string // by which a user asks for it
	Title   string // above it in a table
	Scalars []string
}

// groups hold every scalar once. Those of general interest come first.
var groups = []Group{
	{"decisions", "Decisions", []string{
		"requests", "availability_percent", "granted_percent", "fallback_percent", "timed_out_percent", "refused_percent", "send_failed_percent",
	}},
	{"latency", "Decision latency", []string{
		"latency_p50_ms", "latency_p99_ms", "latency_p99_99_ms", "latency_mean_ms", "latency_p90_ms", "latency_p99_9_ms", "latency_max_ms",
		"granted_latency_p99_ms", "rejected_latency_p99_ms", "oldest_latency_p99_ms", "fallback_latency_p99_ms",
	}},
	{"correctness", "False decisions", []string{
		"false_grants_percent", "false_denials_percent", "false_grants", "false_denials", "health_correct_percent", "disagreed_false_percent",
		"submit_false_grants_percent", "submit_false_denials_percent", "net_mean_tokens", "net_mean_percent", "net_max_tokens", "net_max_percent",
	}},
	{"limits", "Over limits", []string{
		"excess_percent", "excess_tokens", "worst_window_percent", "executed_again", "executed_again_tokens",
		"undecided_consumed_tokens", "rejected_consumed_tokens",
	}},
	{"faults", "Faults and disagreement", []string{
		"lowest_availability_percent", "recovery_ms", "dip_undecided_percent", "disagreed_percent", "convergence_ms",
	}},
	{"work", "Protected work", []string{
		"goodput_percent", "work_latency_p99_ms", "work_latency_p50_ms", "idle_seconds", "work_completed", "work_rejected", "work_refused",
	}},
	{"datagrams", "Datagrams", []string{
		"datagrams_per_decision", "first_sends_per_decision", "replays_per_decision", "completion_deliveries_per_decision",
		"answers_per_decision", "reports_per_decision", "health_datagrams_per_decision", "health_replays_per_decision",
		"health_completion_deliveries_per_decision", "late_answers_percent", "duplicate_answers_percent", "invalid_answers_percent",
		"contradictory", "lost",
	}},
	{"servers", "Queues and memory of servers", []string{
		"queue_p99", "queue_max", "dropped", "dropped_late", "from_memory", "dedup_window_p50_percent", "dedup_window_p99_percent",
		"dedup_window_max_percent", "degraded",
	}},
	{"steering", "Steering", []string{"steered", "steering_p50_ms", "steering_p99_ms", "steering_max_ms"}},
}

// Groups returns the groups of scalars in the order of tables.
func Groups() []Group { return slices.Clone(groups) }

// A Choice is which scalars a table shows. The zero value is the few that matter most.
type Choice struct {
	every bool
	names map[string]bool // nil unless there is a list
}

// Every chooses all scalars.
func Every() Choice { return Choice{every: true} }

// Only chooses the scalars that are named, and those of the groups that are named. Without a name it
// chooses as the zero value does.
func Only(names []string) (Choice, error) {
	if len(names) == 0 {
		return Choice{}, nil
	}
	c := Choice{names: make(map[string]bool)}
	for _, name := range names {
		scalars := scalarsOf(name)
		if scalars == nil {
			return Choice{}, fmt.Errorf("there is no measure and no group %q; the groups are %s, and docs/evaluator.md lists the measures", name, strings.Join(groupNames(), ", "))
		}
		for _, s := range scalars {
			c.names[s] = true
		}
	}
	return c, nil
}

// scalarsOf are the scalars of a group, or a scalar alone.
func scalarsOf(name string) []string {
	for _, g := range groups {
		switch {
		case g.Name == name:
			return g.Scalars
		case slices.Contains(g.Scalars, name):
			return []string{name}
		}
	}
	return nil
}

func groupNames() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.Name)
	}
	return names
}

func (c Choice) shows(scalar string) bool {
	switch {
	case c.every:
		return true
	case c.names != nil:
		return c.names[scalar]
	}
	return chosen[scalar]
}

// headed tells whether rows of so many groups stand under headings.
func (c Choice) headed() bool { return c.every || c.names != nil }

// place is where a scalar stands in tables.
type place struct {
	scalar sim.Scalar
	index  int // among sim.Scalars
	group  int
}

// places returns all scalars in the order of tables, with what each is in full.
func places() []place {
	byName := make(map[string]place)
	same := ""
	for i, s := range sim.Scalars() {
		s.Doc = inFull(s.Doc, &same)
		byName[s.Name] = place{scalar: s, index: i}
	}
	var all []place
	for g := range groups {
		for _, name := range groups[g].Scalars {
			p := byName[name]
			p.group = g
			all = append(all, p)
		}
	}
	return all
}
