package doccheck_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/doccheck"
)

const root = "../.."

func documents(t *testing.T, root string) []*doccheck.Document {
	t.Helper()
	docs, err := doccheck.Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) == 0 {
		t.Fatal("no Markdown files found")
	}
	return docs
}

// TestRepositoryLinks: no link inside the repository is dead.
func TestRepositoryLinks(t *testing.T) {
	for _, p := range doccheck.Links(root, documents(t, root)) {
		t.Error(p)
	}
}

// TestRepositoryFiles: what is shown as a file's content is it.
func TestRepositoryFiles(t *testing.T) {
	for _, p := range doccheck.Files(root, documents(t, root)) {
		t.Error(p)
	}
}

func TestFilesFixture(t *testing.T) {
	d := doccheck.Parse("x.md", "<!-- file: doc.go -->\n```go\npackage other\n```\n\n<!-- file: none.go -->\n```go\n```\n")
	var got []string
	for _, p := range doccheck.Files(".", []*doccheck.Document{d}) {
		got = append(got, p.String())
	}
	want := []string{"x.md:3: this is not doc.go as it is", "x.md:8: there is no none.go to show"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRepositoryGoCode: what the documents show compiles.
func TestRepositoryGoCode(t *testing.T) {
	found, err := doccheck.GoCode(root, documents(t, root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		t.Error(p)
	}
}

// build builds the weir command and returns where it is.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "weir")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/weir")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestRepositoryCommands: the weir commands that the documents show exist, with
// the flags that they show. Each is run with --help, which must parse the rest.
func TestRepositoryCommands(t *testing.T) {
	bin := build(t)
	commands := doccheck.Commands(documents(t, root))
	if len(commands) == 0 {
		t.Fatal("no weir command found in any document")
	}
	for _, c := range commands {
		out, err := exec.CommandContext(t.Context(), bin, append(c.Args, "--help")...).CombinedOutput()
		if err != nil {
			t.Errorf("%s:%d: weir %s: %v\n%s", c.Doc.Path, c.Line, strings.Join(c.Args, " "), err, out)
		}
	}
	// The check itself can fail.
	if err := exec.CommandContext(t.Context(), bin, "acquire", "--no-such-flag", "--help").Run(); err == nil {
		t.Error("an unknown flag passes unseen")
	}
}

// TestRepositoryReferences: what comments in the code refer to is there.
func TestRepositoryReferences(t *testing.T) {
	found, err := doccheck.References(root, documents(t, root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		t.Error(p)
	}
}

func TestReferencesFixture(t *testing.T) {
	found, err := doccheck.References("testdata/refs", documents(t, "testdata/refs"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, p.String())
	}
	want := []string{
		"refs.go:5: there is no docs/b.md",
		`refs.go:8: docs/a.md has no section "Its other section"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLinksFixture(t *testing.T) {
	var got []string
	for _, p := range doccheck.Links("testdata/tree", documents(t, "testdata/tree")) {
		got = append(got, p.String())
	}
	want := []string{
		"sub/bad.md:3: link none.md: there is no sub/none.md",
		`sub/bad.md:4: link other.md#third: sub/other.md has no heading or anchor "third"`,
		`sub/bad.md:5: link #good: sub/bad.md has no heading or anchor "good"`,
		"sub/bad.md:6: link ../../x.md leads out of the repository",
		"sub/bad.md:7: link /good.md: write it relative to the file",
		"sub/bad.md:8: link p.svg#x: sub/p.svg is no Markdown file, it has no anchors",
		"sub/bad.md:9: link none.png: there is no sub/none.png",
		"sub/bad.md:10: link none.svg: there is no sub/none.svg",
		"sub/bad.md:12: link none2.md: there is no sub/none2.md",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestGoCodeFixture(t *testing.T) {
	found, err := doccheck.GoCode(root, documents(t, "testdata/tree"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, fmt.Sprintf("%s:%d", p.Path, p.Line))
	}
	slices.Sort(got)
	want := []string{"sub/bad.md:18", "sub/bad.md:23", "sub/bad.md:27", "sub/bad.md:31"}
	if !slices.Equal(got, want) {
		t.Errorf("problems at %v, want %v: %v", got, want, found)
	}
}

func TestCommandsFixture(t *testing.T) {
	var got []string
	for _, c := range doccheck.Commands(documents(t, "testdata/tree")) {
		got = append(got, fmt.Sprintf("%s:%d: %q", c.Doc.Path, c.Line, c.Args))
	}
	want := []string{
		`good.md:37: ["key" "new" "--auth" "aes" "--id" "7"]`,
		`good.md:39: ["acquire" "--bucket" "checkout=100/1s" "--guard" "inventory<100ms"]`,
		`good.md:41: ["version"]`,
		`good.md:41: ["demo"]`,
		`good.md:45: ["version"]`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
