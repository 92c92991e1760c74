package sim

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMeasureScalarsAreDocumented holds the table in docs/evaluator.md to the list: the same
// scalars in the same order, in the same words.
func TestMeasureScalarsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/evaluator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### Scalars\n")
	if !found {
		t.Fatal("docs/evaluator.md has no section Scalars")
	}
	section, _, _ = strings.Cut(section, "\n#")
	rows := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1)
	var want strings.Builder
	for i, s := range Scalars() {
		want.WriteString("| `" + s.Name + "` | " + s.Doc + " |\n")
		if i >= len(rows) || rows[i][1] != s.Name || rows[i][2] != s.Doc {
			t.Errorf("row %d of the table should be %s", i+1, s.Name)
		}
	}
	if len(rows) > len(Scalars()) {
		t.Errorf("the table has %d rows, there are %d scalars", len(rows), len(Scalars()))
	}
	if t.Failed() {
		t.Logf("the table should be:\n%s", want.String())
	}
}
