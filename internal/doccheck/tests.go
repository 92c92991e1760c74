package doccheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var namedTest = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)\\w+)`")

// Tests checks the tests that the text of a document, which is at path, names as `package.TestName`: they exist in the
// package in the directory of that name below root, where module stands for root itself.
// Every row of a table whose last column is headed "tests" has to name one.
func Tests(root, module, path, text string) ([]Problem, error) {
	var found []Problem
	known := map[string]map[string]bool{}
	inTable := false
	for i, line := range strings.Split(text, "\n") {
		row := strings.HasPrefix(line, "|")
		names := namedTest.FindAllStringSubmatch(line, -1)
		switch {
		case !row:
			inTable = false
		case strings.HasSuffix(line, "| tests |"):
			inTable = true
		case inTable && len(names) == 0 && strings.Trim(line, "|-") != "":
			found = append(found, Problem{path, i + 1, "this claim names no test"})
		}
		for _, name := range names {
			dir := name[1]
			if dir == module {
				dir = "."
			}
			if known[dir] == nil {
				tests, err := testsOf(filepath.Join(root, dir))
				if err != nil {
					return nil, err
				}
				known[dir] = tests
			}
			if !known[dir][name[2]] {
				found = append(found, Problem{path, i + 1, fmt.Sprintf("there is no test %s.%s", name[1], name[2])})
			}
		}
	}
	return found, nil
}

// testsOf returns the names of the functions in a directory's test files.
func testsOf(dir string) (map[string]bool, error) {
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("doccheck: %w", err)
	}
	for _, path := range files {
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("doccheck: %w", err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("doccheck: %w", err)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[fn.Name.Name] = true
			}
		}
	}
	return names, nil
}
