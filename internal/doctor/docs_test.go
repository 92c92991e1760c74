package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every diagnosis is in docs/troubleshooting.md, nothing else is, and a test expects
// it: each of them is seen to come out.
func TestEveryDiagnosisIsDocumentedAndTested(t *testing.T) {
	doc, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "## What it says, and what to do")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[string]bool{}
	for row := range strings.Lines(table) {
		first, _, ok := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !ok || strings.Contains(first, "weir doctor") {
			continue // no row of the table, or its head
		}
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(first, -1) {
			documented[m[1]] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code, tests strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") {
			tests.Write(b)
		} else {
			code.Write(b)
		}
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.diagnosis\("([a-z-]+)"`).FindAllStringSubmatch(code.String(), -1) {
		found[m[1]] = true
		if !documented[m[1]] {
			t.Errorf("%s is not documented", m[1])
		}
		if !strings.Contains(tests.String(), `"`+m[1]+`"`) {
			t.Errorf("%s is not tested", m[1])
		}
	}
	for c := range documented {
		if !found[c] {
			t.Errorf("%s is documented and does not exist", c)
		}
	}
	if len(found) < 25 {
		t.Errorf("only %d diagnoses found", len(found))
	}
}
