package doccheck_test

import (
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/doccheck"
)

// TestThreatModel: every claim of the threat model names tests that are there.
func TestThreatModel(t *testing.T) {
	const path = "docs/threat-model.md"
	found, err := doccheck.Tests(root, "weir", path, read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		t.Error(p)
	}
}

func TestTestsFixture(t *testing.T) {
	const text = "`mod.TestTestsFixture` and `mod.TestNone`\n" +
		"\n| they try | tests |\n|---|---|\n| a | `mod.TestTestsFixture` |\n| b | `mod.FuzzNone` |\n| c | none |\n" +
		"\n| other | table |\n|---|---|\n| d | none |\n`none.TestTestsFixture`\n"
	found, err := doccheck.Tests(".", "mod", "x.md", text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, p.String())
	}
	want := []string{
		"x.md:1: there is no test mod.TestNone", "x.md:6: there is no test mod.FuzzNone",
		"x.md:7: this claim names no test", "x.md:12: there is no test none.TestTestsFixture",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
