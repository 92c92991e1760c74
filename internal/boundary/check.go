package boundary

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/internal/gocheck"
)

// Module checks every package of the module whose root directory is root
// against rooms. Nested modules, testdata and hidden directories are left out.
// The error is about the check itself (a file that does not parse, a go command
// that fails), never about a violation.
func Module(root, modulePath string, rooms map[string]Room) ([]Violation, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	rep := &report{fset: token.NewFileSet(), root: root}
	types := gocheck.New(rep.fset, root)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != root && leftOut(path, d.Name()) {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return checkDir(rep, types, path, modulePath, filepath.ToSlash(rel), rooms)
	})
	return rep.sorted(), err
}

// leftOut tells whether a directory is none of the module's packages.
func leftOut(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// checkDir checks the package pkg (a path below the module's) that lies in dir.
// A directory without Go files is no package, and nothing is wrong with it.
func checkDir(rep *report, types *gocheck.Checker, dir, modulePath, pkg string, rooms map[string]Room) error {
	files, err := parseDir(rep, dir)
	if err != nil || len(files) == 0 {
		return err
	}
	r, ok := room(rooms, pkg)
	if !ok {
		rep.add(RuleRoom, files[0].Package, "package %s is in no room: add it to the table in internal/boundary/rooms.go", pkg)
	}
	code := withoutTests(rep.fset, files)
	for _, f := range code {
		checkImports(rep, f, modulePath, pkg, r)
	}
	checkDocs(rep, code)
	if !r.Pure {
		return nil
	}
	return checkPure(rep, types, modulePath+"/"+pkg, code)
}

// parseDir parses every Go file of dir, whatever it is built for, and checks
// the length of each.
func parseDir(rep *report, dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if n := bytes.Count(src, []byte("\n")); n > MaxLines {
			rep.addAt(RuleLength, token.Position{Filename: name}, "%d lines, more than %d: split it by idea", n, MaxLines)
		}
		f, err := parser.ParseFile(rep.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// withoutTests returns the files that are part of the product.
func withoutTests(fset *token.FileSet, files []*ast.File) []*ast.File {
	var code []*ast.File
	for _, f := range files {
		if !strings.HasSuffix(fset.Position(f.Package).Filename, "_test.go") {
			code = append(code, f)
		}
	}
	return code
}
