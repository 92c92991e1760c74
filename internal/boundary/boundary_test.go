package boundary

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/gocheck"
)

const modulePath = "github.com/weirhq/weir"

// TestModule is the point of the package: the repository keeps its own rules.
func TestModule(t *testing.T) {
	found, err := Module(filepath.Join("..", ".."), modulePath, Rooms())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// TestRoomsExist refuses rows of packages that are gone, which would let a later
// package of that name in unseen, and rooms that docs/architecture.md lacks.
func TestRoomsExist(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range Rooms() {
		dir, below := strings.CutSuffix(pkg, "/...")
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(dir))); err != nil {
			t.Errorf("room %s: %v", pkg, err)
		}
		if !below && pkg != "." && !strings.Contains(string(doc), "`"+pkg+"`") {
			t.Errorf("room %s is not in docs/architecture.md", pkg)
		}
	}
}

// checkFixture checks one file as if it were the package pkg in room r.
func checkFixture(t *testing.T, name, pkg string, r Room) []Violation {
	t.Helper()
	rep := &report{fset: token.NewFileSet(), root: "."}
	f, err := parser.ParseFile(rep.fset, filepath.FromSlash(name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	checkImports(rep, f, modulePath, pkg, r)
	checkDocs(rep, []*ast.File{f})
	if r.Pure {
		tc := gocheck.New(rep.fset, ".")
		if err := checkPure(rep, tc, modulePath+"/"+pkg, []*ast.File{f}); err != nil {
			t.Fatal(err)
		}
	}
	return rep.sorted()
}

// TestFixtures sees each rule fail: every fixture breaks exactly one, once.
func TestFixtures(t *testing.T) {
	pure := Room{Pure: true}
	tests := map[string]struct {
		room Room
		rule Rule
		line int
		text string // what the violation must name
	}{
		"import":            {Room{Ours: Rooms()["core"].Ours}, RuleImport, 4, "core may not import server"},
		"hidden":            {Room{Ours: []string{"..."}}, RuleHidden, 4, "core imports cmd/weir"},
		"hidden_demo":       {Room{Ours: []string{"..."}}, RuleHidden, 4, "core imports internal/demo/scene"},
		"module":            {Rooms()["wire"], RuleModule, 4, "github.com/miekg/dns"},
		"go_statement":      {pure, RuleConcurrency, 5, "go statement"},
		"select":            {pure, RuleConcurrency, 5, "select"},
		"channel_type":      {pure, RuleConcurrency, 4, "channel"},
		"receive":           {pure, RuleConcurrency, 7, "receive"},
		"range_channel":     {pure, RuleConcurrency, 7, "range over a channel"},
		"lock":              {pure, RuleConcurrency, 4, "sync"},
		"atomic":            {pure, RuleConcurrency, 4, "sync/atomic"},
		"context":           {pure, RuleConcurrency, 4, "context"},
		"map_range":         {pure, RuleMapOrder, 5, "range over a map"},
		"map_range_generic": {pure, RuleMapOrder, 5, "range over a map"},
		"map_excuse_bare":   {pure, RuleMapOrder, 6, "range over a map"},
		"map_excuse_unused": {pure, RuleMapOrder, 5, "remove it"},
		"map_keys":          {pure, RuleMapOrder, 10, "maps.Keys"},
		"clock_now":         {pure, RuleClock, 7, "time.Now"},
		"clock_since":       {pure, RuleClock, 7, "time.Since"},
		"clock_after":       {pure, RuleClock, 6, "time.AfterFunc"},
		"clock_timer":       {pure, RuleClock, 7, "time.NewTimer"},
		"random_v1":         {pure, RuleRandom, 4, "math/rand"},
		"random_global":     {pure, RuleRandom, 7, "rand/v2.Uint64"},
		"random_generic":    {pure, RuleRandom, 7, "rand/v2.N"},
		"random_crypto":     {pure, RuleRandom, 4, "crypto/rand"},
		"random_hash":       {pure, RuleRandom, 4, "hash/maphash"},
		"io_net":            {pure, RuleIO, 4, "import net:"},
		"io_http":           {pure, RuleIO, 4, "net/http"},
		"io_os":             {pure, RuleIO, 4, "import os:"},
		"io_print":          {pure, RuleIO, 7, "fmt.Println"},
		"doc_package":       {Room{}, RuleDoc, 1, "package comment"},
		"doc_func":          {Room{}, RuleDoc, 4, "Exported"},
		"doc_method":        {Room{}, RuleDoc, 7, "Exported"},
		"doc_type":          {Room{}, RuleDoc, 4, "Exported"},
		"doc_const":         {Room{}, RuleDoc, 8, "Two"},
		"doc_var":           {Room{}, RuleDoc, 4, "Exported"},
		"doc_interface":     {Room{}, RuleDoc, 8, "T.N"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found := checkFixture(t, "testdata/bad/"+name+".go", "core", tt.room)
			if len(found) != 1 {
				t.Fatalf("found %d violations, want 1: %v", len(found), found)
			}
			v := found[0]
			if v.Rule != tt.rule || v.Pos.Line != tt.line || !strings.Contains(v.Text, tt.text) {
				t.Errorf("found %v, want [%s] in line %d naming %q", v, tt.rule, tt.line, tt.text)
			}
		})
	}
	files, err := filepath.Glob("testdata/bad/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".go"); tests[name].rule == "" {
			t.Errorf("%s is in no row of this test", f)
		}
	}
}

func TestGoodFixture(t *testing.T) {
	for _, v := range checkFixture(t, "testdata/good/good.go", "core", Room{Pure: true}) {
		t.Error(v)
	}
}

// TestModuleWalk sees which directories are packages of the module, and the
// rules that are about files and packages as a whole.
func TestModuleWalk(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bad := "package bad\n\nfunc Exported() {}\n"
	write("go.mod", "module example.test/m\n\ngo 1.26\n")
	write("m.go", "// Package m is fine.\npackage m\n")
	write("m_test.go", "package m\n\nfunc Exported() {}\n") // tests need no comments
	write("nested/go.mod", "module example.test/nested\n")
	write("nested/bad.go", bad)
	write("testdata/bad.go", bad)
	write(".hidden/bad.go", bad)
	write("long/doc.go", "// Package long is fine.\npackage long\n"+strings.Repeat("\n", MaxLines-2))
	write("long/long_test.go", "package long\n"+strings.Repeat("\n", MaxLines))
	write("stray/sub/stray.go", "// Package sub has no room.\npackage sub\n")
	write("windows/w_windows.go", bad) // seen although it is not built here

	found, err := Module(root, "example.test/m", map[string]Room{".": {}, "long": {}, "windows": {}, "other/...": {}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"long/long_test.go: [length] 701 lines, more than 700: split it by idea",
		"stray/sub/stray.go:2:1: [room] package stray/sub is in no room: add it to the table in internal/boundary/rooms.go",
		"windows/w_windows.go:1:1: [doc] package bad has no package comment",
		"windows/w_windows.go:3:1: [doc] Exported is exported and has no comment",
	}
	for i, v := range found {
		if i >= len(want) || v.String() != want[i] {
			t.Errorf("unexpected: %v", v)
		}
	}
	if len(found) != len(want) {
		t.Errorf("found %d violations, want %d", len(found), len(want))
	}
}

func TestRoom(t *testing.T) {
	rooms := map[string]Room{"a": {Pure: true}, "b/...": {Ours: []string{"x/...", "y"}}}
	for pkg, want := range map[string]bool{"a": true, "a/c": false, "b": false, "b/c": true, "b/c/d": true, "c": false} {
		if _, got := room(rooms, pkg); got != want {
			t.Errorf("room(%q) found: %t, want %t", pkg, got, want)
		}
	}
	for pkg, want := range map[string]bool{"x": false, "x/z": true, "y": true, "y/z": false, "xx/z": false} {
		if got := allows(rooms["b/..."].Ours, pkg); got != want {
			t.Errorf("allows(%q): %t, want %t", pkg, got, want)
		}
	}
}
