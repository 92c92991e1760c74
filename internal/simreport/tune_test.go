package simreport

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simtune"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// searched is a search in a world in which short rounds are fast and cost datagrams.
func searched(t *testing.T, gain float64) *simtune.Result {
	t.Helper()
	objective, err := simtune.FindObjective("latency")
	if err != nil {
		t.Fatal(err)
	}
	plan := simtune.Plan{
		Objective: objective, Scenarios: []string{"health"}, Weights: []int{1}, Seed: 1, Budget: simtune.Quick,
		Fits: func(policy.Policy) bool { return true },
	}
	r, err := simtune.Search(t.Context(), plan, func(_ context.Context, trials []simtune.Trial) ([]simtune.Outcome, error) {
		var all []simtune.Outcome
		for _, trial := range trials {
			line, err := trial.Policy.Compile()
			if err != nil {
				return nil, err
			}
			ms := float64(line.Start(1)) / float64(time.Millisecond)
			v := simtune.Values{simtune.P50: 1, simtune.P99: 5 + gain*ms, simtune.P999: 30, simtune.Datagrams: 6 + gain*10/ms}
			v[simtune.P99] += 0.01 * float64(trial.Seed%3)
			if trial.Policy == policy.FastestValid() {
				v[simtune.False] = 3
			}
			all = append(all, simtune.Outcome{v})
		}
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tunePageText(t *testing.T, r *simtune.Result) string {
	t.Helper()
	var b strings.Builder
	err := WriteTune(&b, &TunePage{
		Command: "weir tune --rtt '<1ms>'", Version: "1.2.3", Network: "3 servers", Result: r,
		Scenarios: []*sim.Scenario{{Name: "health", Purpose: "Nothing goes wrong."}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTunePage holds that the page shows the recommendation, to be pasted, each policy in the table and
// as a point, what is beyond a guard, and what was played; and that it needs nothing else.
func TestTunePage(t *testing.T) {
	r := searched(t, 1)
	if r.Recommended == 0 {
		t.Fatal("nothing is recommended")
	}
	page := tunePageText(t, r)
	for _, want := range []string{
		"<pre id=\"recommended\">--policy '" + simtune.Text(r.Rows[r.Recommended].Policy) + "'</pre>",
		"weir tune --rtt &#39;&lt;1ms&gt;&#39;", "It saves ", "instead of: round 0 lasts 20ms.",
		"fastest-valid is beyond a guard: false in health is 3 %, and 0.2 is allowed",
		"<th scope=\"row\">health</th><td>1</td><td>Nothing goes wrong.</td>", `class="chosen"`, r.Effort(),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, row := range r.Rows {
		if n := strings.Count(page, "<title>"+row.Name+": p99 "); n != 4 {
			t.Errorf("%s is a point in %d charts, want 4", row.Name, n)
		}
		if !strings.Contains(page, "<code>"+simtune.Text(row.Policy)+"</code>") {
			t.Errorf("the text of %s is missing", row.Name)
		}
	}
	for _, not := range []string{"<script", "http://", "https://", "NaN", "Inf", "<no value>"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if again := tunePageText(t, r); again != page {
		t.Error("the same result is another page")
	}
}

func TestTunePageOfTheDefault(t *testing.T) {
	page := tunePageText(t, searched(t, 0))
	if !strings.Contains(page, "<h2>Recommended: the default</h2>") || strings.Contains(page, `id="recommended"`) || strings.Contains(page, "NaN") {
		t.Error("a page that recommends the default does not say so")
	}
}

// TestScatterIsWhereItShouldBe holds that less is further down and further left, and that names are on
// no other name.
func TestScatterIsWhereItShouldBe(t *testing.T) {
	r := searched(t, 1)
	x, y := scatterAxes(r, simtune.P99, simtune.Datagrams)
	if x.position(5) >= x.position(25) || y.position(6) <= y.position(8) {
		t.Error("less is not further down and left")
	}
	labels := scatterLabels(r, x, y, simtune.P99, simtune.Datagrams)
	if len(labels) == 0 || labels[0].Text != "recommended" {
		t.Fatalf("the first name is %+v", labels)
	}
	if want := len(r.Rows); len(labels) != want {
		t.Errorf("%d of %d points have a name", len(labels), want)
	}
	for i, a := range labels {
		for _, b := range labels[:i] {
			if a.Y == b.Y && a.X == b.X && a.Anchor == b.Anchor {
				t.Errorf("%s is where %s is", a.Text, b.Text)
			}
		}
	}
}
