package reality

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/children"
)

// mostLate is how late the client or a relay may be at the 99th percentile. When they are later the
// machine has other work, and there is nothing to judge.
const mostLate = time.Millisecond

// mostDisturbed is how many percent of the requests the machine may have disturbed. As many may have gone either
// way, so with more a share could be anything.
const mostDisturbed = 2

// attempts are how often a scenario is played while the machine has other work.
const attempts = 3

// The simulator says of a scenario what real processes then do.
func TestReality(t *testing.T) {
	if !*forReal {
		t.Skip("it plays for real with -real")
	}
	binary, err := children.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scenarios {
		t.Run(name, func(t *testing.T) {
			s := load(t, name)
			p, err := newPlan(s)
			if err != nil {
				t.Fatal(err)
			}
			simulated, err := predict(s, seeds)
			if err != nil {
				t.Fatal(err)
			}
			for range attempts {
				o, late := playForReal(t, binary, p)
				if late > mostLate || 100*o.Disturbed > mostDisturbed*o.Submitted {
					t.Logf("the client or a relay was %v late, and %d of %d requests were disturbed: the machine has other work, and the figures judge nothing", late, o.Disturbed, o.Submitted)
					continue
				}
				if !report(t, compare(name, simulated, o)) {
					t.Error("the simulator and reality disagree")
				}
				t.Log(row(name, simulated, o)) // of the table in docs/evaluator.md
				if *record != "" {
					write(t, filepath.Join(*record, name+".json"), o)
				}
				return
			}
			t.Skipf("%d times the machine had other work: nothing is judged", attempts)
		})
	}
}

// report prints a comparison as lines of a table, and tells whether all agrees.
func report(t *testing.T, all []measure) bool {
	t.Helper()
	agree := true
	for _, m := range all {
		verdict := ""
		if !m.agrees {
			verdict, agree = " **disagrees**", false
		}
		t.Logf("| `%s` | %s | %s | %s | %s |%s", m.scenario, m.name, m.simulated, m.real, m.bound, verdict)
	}
	return agree
}

func write(t *testing.T, path string, o *outcome) {
	t.Helper()
	text, err := json.MarshalIndent(o, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
