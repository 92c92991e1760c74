package simcompare

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// TestGroupsHoldEveryScalarOnce, under names that no scalar has.
func TestGroupsHoldEveryScalarOnce(t *testing.T) {
	seen := map[string]int{}
	for _, g := range Groups() {
		for _, s := range g.Scalars {
			seen[s]++
		}
		seen[g.Name]++
	}
	for _, s := range sim.Scalars() {
		if seen[s.Name] != 1 {
			t.Errorf("%s is in the groups %d times", s.Name, seen[s.Name])
		}
		delete(seen, s.Name)
	}
	for _, g := range Groups() {
		if seen[g.Name] != 1 {
			t.Errorf("%d things are called %s", seen[g.Name]+1, g.Name)
		}
		delete(seen, g.Name)
	}
	for name := range seen {
		t.Errorf("there is no scalar %s", name)
	}
}

func rowNames(rows []Row) string {
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

// TestOnly chooses by group and by scalar; rows stay in the order of groups, however they are asked
// for.
func TestOnly(t *testing.T) {
	c := &Comparison{Scenario: small(nil), Seeds: 1, Columns: []Column{NewColumn("p", policy.Default(), []*sim.Measures{{}})}}
	for words, want := range map[string]string{
		"steering":                     "steered",
		"lost steering requests":       "requests lost steered",
		"dropped servers dropped_late": "dropped dropped_late from_memory degraded",
	} {
		choice, err := Only(strings.Fields(words))
		if err != nil {
			t.Fatal(err)
		}
		if got := rowNames(c.RowsOf(choice)); got != want {
			t.Errorf("%s: %s, not %s", words, got, want)
		}
	}
	if few, err := Only(nil); err != nil || rowNames(c.RowsOf(few)) != rowNames(c.Rows(false)) {
		t.Errorf("nothing is asked for: %s, %v", rowNames(c.RowsOf(few)), err)
	}
	if all := c.RowsOf(Every()); rowNames(all) != rowNames(c.Rows(true)) || len(all) <= len(c.Rows(false)) {
		t.Errorf("everything: %s", rowNames(all))
	}
	if _, err := Only([]string{"latency", "latncy"}); err == nil || !strings.Contains(err.Error(), `"latncy"; the groups are decisions, latency, `) {
		t.Errorf("%v", err)
	}
}

// TestDocsAreInFull: what a scalar is can be read without the line above it.
func TestDocsAreInFull(t *testing.T) {
	docs := map[string]string{}
	for _, p := range places() {
		docs[p.scalar.Name] = p.scalar.Doc
		if strings.Contains(p.scalar.Doc, "the same") {
			t.Errorf("%s is %s", p.scalar.Name, p.scalar.Doc)
		}
	}
	for name, want := range map[string]string{
		"latency_max_ms":           "time from submit to decision, maximum",
		"rejected_latency_p99_ms":  "time from submit to decision of rejected requests, 99th percentile",
		"fallback_latency_p99_ms":  "time from submit to decision of requests that another server decided, 99th percentile",
		"net_mean_percent":         "net tokens of a bucket and window, mean of absolute values, in percent of the limit",
		"excess_percent":           "tokens granted beyond limits by all servers together, of all tokens granted",
		"dedup_window_max_percent": "lag of a server's last copy of a request behind the first, of the dedup TTL, maximum",
	} {
		if docs[name] != want {
			t.Errorf("%s is %q, want %q", name, docs[name], want)
		}
	}
}

// TestList shows two groups, in lines that are long enough and in such as are not.
func TestList(t *testing.T) {
	c := made("latency_p50_ms", []float64{3, 3.5})
	i := slices.IndexFunc(c.Columns[0].Seeds.Scalars, func(s sim.Spread) bool { return s.Name == "lost" })
	c.Columns[0].Seeds.Scalars[i] = sim.SpreadOf("lost", []float64{1, 1})
	for width, want := range map[int]string{
		60: `Decision latency
  latency_p50_ms  3.2 ± 3.2  time from submit to decision,
                             median

Datagrams
  lost  1  datagrams and answers that did not arrive
`,
		50: `Decision latency
  latency_p50_ms  3.2 ± 3.2
    time from submit to decision, median

Datagrams
  lost  1  datagrams and answers that did not
           arrive
`,
	} {
		var b strings.Builder
		if err := c.WriteList(&b, Every(), width); err != nil || b.String() != want {
			t.Errorf("%d: %v\n%s", width, err, b.String())
		}
	}
}

// TestScenarios shows a line for each scenario.
func TestScenarios(t *testing.T) {
	a, b := made("latency_p50_ms", []float64{3, 3.5}), made("steered", []float64{7, 7})
	b.Scenario.Name = "another_one"
	all := []Comparison{*a, *b}
	var text strings.Builder
	if err := WriteScenarios(&text, all, Every(), 60); err != nil {
		t.Fatal(err)
	}
	want := `policy policy-a: 1s, seeds 1 to 2: mean ± half the width of
its 95 % interval

             latency_p50_
                     ms ↓  steered
small           3.2 ± 3.2        –
another_one             –        7
`
	if text.String() != want {
		t.Errorf("%s", text.String())
	}
	b.Scenario.Length *= 2
	text.Reset()
	if err := WriteScenariosMarkdown(&text, []Comparison{*a, *b}, Every()); err != nil {
		t.Fatal(err)
	}
	want = `policy policy-a: seeds 1 to 2: mean ± half the width of its 95 % interval.

| | ` + "`latency_p50_ms` ↓ | `steered`" + ` |
|---|---|---|
| small | 3.2 ± 3.2 | – |
| another\_one | – | 7 |
`
	if text.String() != want {
		t.Errorf("%s", text.String())
	}
}

// TestHeadings stand above groups, if there are several.
func TestHeadings(t *testing.T) {
	c := made("latency_p50_ms", []float64{3})
	c.Columns[0].Seeds.Scalars[0] = sim.SpreadOf("requests", []float64{5})
	for _, tt := range []struct {
		only []string
		want bool
	}{{nil, false}, {[]string{"decisions"}, false}, {[]string{"decisions", "latency"}, true}} {
		choice, err := Only(tt.only)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := c.WriteTable(&b, choice, 80); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "\nDecision latency\nlatency_p50_ms"); got != tt.want {
			t.Errorf("%v:\n%s", tt.only, b.String())
		}
	}
}
