package reality

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// column is one of the table in docs/evaluator.md.
type column func(*outcome) string

// columns are what the table shows of a run.
var columns = []column{
	func(o *outcome) string { return milliseconds(o.P50) },
	func(o *outcome) string { return milliseconds(o.P95) },
	func(o *outcome) string { return percent(o.decided(), o.Submitted) },
	func(o *outcome) string { return percent(o.Granted, o.decided()) },
	func(o *outcome) string { return percent(o.By["A"], o.decided()) },
	func(o *outcome) string { return percent(o.By["B"], o.decided()) },
	func(o *outcome) string { return percent(o.Replayed, o.decided()) },
	func(o *outcome) string { return percent(int(o.Sent[core.SendCompletion]), int(o.Sent[core.SendFirst])) },
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e6) }
func percent(k, n int) string             { return fmt.Sprintf("%.1f", 100*ratio(k, n)) }

// row is the line of a scenario: all simulated runs as one, and the real one.
func row(name string, simulated []*outcome, seen *outcome) string {
	all := merge(simulated)
	cells := []string{"`" + name + "`"}
	for _, c := range columns {
		cells = append(cells, c(all)+" / "+c(seen))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// merge makes several runs one.
func merge(runs []*outcome) *outcome {
	all := &outcome{By: map[string]int{}}
	for _, o := range runs {
		all.Submitted += o.Submitted
		all.Granted += o.Granted
		all.Rejected += o.Rejected
		all.TimedOut += o.TimedOut
		all.Other += o.Other
		all.Replayed += o.Replayed
		for server, n := range o.By {
			all.By[server] += n
		}
		for kind, n := range o.Sent {
			all.Sent[kind] += n
		}
		all.took = append(all.took, o.took...)
	}
	all.finish()
	return all
}

// The documentation shows the real runs that are recorded.
func TestPageHasTheRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/evaluator.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scenarios {
		o := recorded(t, name)
		_, rest, found := strings.Cut(string(page), "\n| `"+name+"` | ")
		line, _, _ := strings.Cut(rest, "\n")
		cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		if !found || len(cells) != len(columns) {
			t.Errorf("%s has no row in docs/evaluator.md, or one with %d cells", name, len(cells))
			continue
		}
		for i, c := range columns {
			if _, seen, _ := strings.Cut(cells[i], " / "); seen != c(o) {
				t.Errorf("%s: column %d says %q, and %s is recorded", name, i+2, cells[i], c(o))
			}
		}
	}
}
