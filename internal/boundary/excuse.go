package boundary

import (
	"go/ast"
	"go/token"
	"strings"
)

// directive is what a pure package writes on the line of, or directly above, a
// range over a map whose order is harmless, with the reason behind it:
//
//	//boundary:unordered only counts
const directive = "//boundary:unordered"

// excuses are the directives of one file, by line.
type excuses struct {
	byLine map[int]*excuse
}

type excuse struct {
	pos    token.Pos
	reason string
	used   bool
}

func excusesOf(fset *token.FileSet, f *ast.File) *excuses {
	e := &excuses{byLine: map[int]*excuse{}}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if reason, ok := strings.CutPrefix(c.Text, directive); ok {
				e.byLine[fset.Position(c.Pos()).Line] = &excuse{pos: c.Pos(), reason: strings.TrimSpace(reason)}
			}
		}
	}
	return e
}

// take uses the excuse for a line, which stands on it or on the one above.
// One without a reason excuses nothing.
func (e *excuses) take(line int) bool {
	for _, l := range []int{line, line - 1} {
		if x := e.byLine[l]; x != nil {
			x.used = true
			return x.reason != ""
		}
	}
	return false
}

// unused reports the excuses that excuse nothing, which would hide a later use.
func (e *excuses) unused(rep *report) {
	for _, x := range e.byLine {
		if !x.used {
			rep.add(RuleMapOrder, x.pos, "%s where nothing ranges over a map: remove it", directive)
		}
	}
}
