package doccheck

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	reference = regexp.MustCompile(`\b(docs/[\w-]+\.md)((?:[,:]? (?:and )?"[^"]+")*)`)
	quoted    = regexp.MustCompile(`"([^"]+)"`)
)

// References checks what the comments of Go files below root refer to: a
// document below docs/ exists, and so do the sections named behind it, as in
//
//	docs/protocol.md, "Layouts", "Answers"
func References(root string, docs []*Document) ([]Problem, error) {
	byPath := map[string]*Document{}
	for _, d := range docs {
		byPath[d.Path] = d
	}
	var found []Problem
	err := walk(root, ".go", func(path string) error {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		problems, err := referencesOf(path, filepath.ToSlash(rel), byPath)
		found = append(found, problems...)
		return err
	})
	return found, err
}

// referencesOf checks the comments of one file.
func referencesOf(path, rel string, docs map[string]*Document) ([]Problem, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("doccheck: %w", err)
	}
	var found []Problem
	for _, group := range f.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			line := fset.Position(group.Pos()).Line
			doc := docs[m[1]]
			if doc == nil {
				found = append(found, Problem{rel, line, "there is no " + m[1]})
				continue
			}
			for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
				if !doc.Anchors[slug(q[1])] {
					found = append(found, Problem{rel, line, fmt.Sprintf("%s has no section %q", m[1], q[1])})
				}
			}
		}
	}
	return found, nil
}
