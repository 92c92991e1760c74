package simtune

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// TestTable holds what is printed of a search in a known world.
func TestTable(t *testing.T) {
	r, err := Search(t.Context(), testPlan(t, "balanced", Quick), surface(bowl))
	if err != nil {
		t.Fatal(err)
	}
	var text, markdown strings.Builder
	if err := r.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	if !strings.HasPrefix(strings.TrimSpace(lines[0]), "cost") || !strings.HasPrefix(lines[1], "default ") || !strings.HasPrefix(lines[2], "recommended + ") {
		t.Errorf("the table begins with\n%s", strings.Join(lines[:3], "\n"))
	}
	// What is recommended can be pasted.
	_, rest, _ := strings.Cut(text.String(), "Recommended: --policy '")
	pasted, _, _ := strings.Cut(rest, "'")
	if p, err := policy.Parse(pasted); err != nil || p != r.Rows[r.Recommended].Policy {
		t.Errorf("%q is %v, %v", pasted, p, err)
	}
	for _, preset := range policy.PresetNames() {
		if !strings.Contains(text.String(), "\n"+preset+" ") || !strings.Contains(markdown.String(), "\n| "+preset+" ") {
			t.Errorf("%s has no row", preset)
		}
	}
	for _, want := range []string{"It saves ", "found by 1 seeds, chosen by 3 others, and all figures are of fresh ones, 5 to 9.", "- Round 0 lasts 6ms, instead of: round 0 lasts 20ms."} {
		if !strings.Contains(text.String(), want) || !strings.Contains(markdown.String(), want) {
			t.Errorf("%q is missing in\n%s%s", want, &text, &markdown)
		}
	}
	for _, line := range lines[:len(r.Rows)+1] {
		if line != strings.TrimRight(line, " ") {
			t.Errorf("%q ends in blanks", line)
		}
	}
}

// TestBreachesAreTold holds that a guard is named with the scenario, the value and what is allowed.
func TestBreachesAreTold(t *testing.T) {
	r := &Result{Scenarios: []string{"health", "killed"}, Rows: []Row{{Name: "x", Breaches: []Breach{{1, Undecided, 0.5, 0.1}, {-1, Datagrams, 9.5, 9}}}}}
	want := []string{
		"x is beyond a guard: undecided in killed is 0.5 %, and 0.1 is allowed",
		"x is beyond a guard: datagrams over all scenarios is 9.5, and 9 is allowed",
	}
	if got := r.Breaches(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("it says %q", got)
	}
}

// TestUndecidedIsTold holds that what is recommended and decides little is recommended with a word on that.
func TestUndecidedIsTold(t *testing.T) {
	for undecided, want := range map[float64]bool{0.9: false, 100: true} {
		row := Row{Name: "default"}
		for _, m := range Measures() {
			row.Cells = append(row.Cells, sim.Spread{Name: m.Name(), Runs: 5})
		}
		row.Cells[Undecided].Mean = undecided
		r := &Result{Rows: []Row{row}}
		if got := r.Verdict(); strings.Contains(got, "leaves 100 % of the requests undecided") != want {
			t.Errorf("with %v %% undecided it says %q", undecided, got)
		}
	}
}
