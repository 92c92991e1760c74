package reality

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/policy"
)

// quickSeeds are enough where nothing is published.
const quickSeeds = 8

// recorded returns what a scenario came to when it was played for real.
func recorded(t *testing.T, name string) *outcome {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "recorded", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// What real processes did when they were last asked is still what the simulator says. So whoever
// changes the core, the policy or the simulator in a way that reality did not follow hears of it
// without a real run.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulated, err := predict(load(t, name), quickSeeds)
			if err != nil {
				t.Fatal(err)
			}
			o := recorded(t, name)
			t.Log(row(name, simulated, o))
			if !report(t, compare(name, simulated, o)) {
				t.Error("the simulator no longer says what was seen; if reality has changed, too, play it again with -real -record testdata/recorded")
			}
		})
	}
}

// A simulation of a policy that is wrong in one number disagrees with what was seen, and the
// comparison names what differs.
func TestWrongPolicyIsSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ wrong, scenario, measures string }{
		{"unit=40ms", "slow-oldest", "median, decided by A, decided by B, decided by C"},
		{"preference=list:0", "lognormal", "median, p95, decided by A, decided by B, decided by C"},
		{"preference=list:1,1", "far", "decided by A, decided by B, decided by C"},
		{"replays=0", "heavy-loss", "available, timed out"},
		{"completion-delivery=off", "constant", "delivered to a server"},
	} {
		t.Run(c.wrong, func(t *testing.T) {
			t.Parallel()
			s := load(t, c.scenario)
			field, _, _ := strings.Cut(c.wrong, "=")
			words := slices.DeleteFunc(strings.Fields(s.Policy.String()), func(w string) bool { return strings.HasPrefix(w, field+"=") })
			wrong, err := policy.Parse(strings.Join(append(words, c.wrong), " "))
			if err != nil {
				t.Fatal(err)
			}
			s.Policy = wrong
			simulated, err := predict(s, quickSeeds)
			if err != nil {
				t.Fatal(err)
			}
			var differ []string
			for _, m := range compare(c.scenario, simulated, recorded(t, c.scenario)) {
				if !m.agrees {
					differ = append(differ, m.name)
				}
			}
			for _, want := range strings.Split(c.measures, ", ") {
				if !slices.Contains(differ, want) {
					t.Errorf("%q is not told apart in %s; what is: %s", want, c.scenario, strings.Join(differ, ", "))
				}
			}
		})
	}
}
