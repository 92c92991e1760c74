package boundary

import (
	"cmp"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
)

// A Rule names one thing that is checked.
type Rule string

// The rules.
const (
	RuleRoom        Rule = "room"        // the package has no row in the table of rooms
	RuleImport      Rule = "import"      // imports a package of ours that its room does not list
	RuleHidden      Rule = "hidden"      // something other than a command imports a command or the demo
	RuleModule      Rule = "module"      // imports a third-party module that its room does not list
	RuleConcurrency Rule = "concurrency" // go, select, channels or locks in a pure package
	RuleMapOrder    Rule = "map-order"   // ranges over a map in a pure package without saying why the order is harmless
	RuleClock       Rule = "clock"       // reads a clock or arms a timer in a pure package
	RuleRandom      Rule = "random"      // unseeded randomness in a pure package
	RuleIO          Rule = "io"          // network, files or processes in a pure package
	RuleLength      Rule = "length"      // a file longer than MaxLines
	RuleDoc         Rule = "doc"         // something exported without a comment, or a package without one
)

// MaxLines is how many lines a Go file may have, tests included.
const MaxLines = 700

// A Violation is one place that breaks one rule.
type Violation struct {
	Rule Rule           // which rule
	Pos  token.Position // where; a line of 0 stands for the whole file
	Text string         // what is wrong, and what to do about it
}

// String returns the violation as one line: place, rule and text.
func (v Violation) String() string {
	return fmt.Sprintf("%s: [%s] %s", v.Pos, v.Rule, v.Text)
}

// report collects violations of the files of one check.
type report struct {
	fset  *token.FileSet
	root  string // file names are told relative to it
	found []Violation
}

func (r *report) add(rule Rule, pos token.Pos, format string, args ...any) {
	r.addAt(rule, r.fset.Position(pos), format, args...)
}

func (r *report) addAt(rule Rule, pos token.Position, format string, args ...any) {
	if rel, err := filepath.Rel(r.root, pos.Filename); err == nil {
		pos.Filename = filepath.ToSlash(rel)
	}
	r.found = append(r.found, Violation{Rule: rule, Pos: pos, Text: fmt.Sprintf(format, args...)})
}

// sorted returns what was found in order of place.
func (r *report) sorted() []Violation {
	slices.SortStableFunc(r.found, func(a, b Violation) int {
		return cmp.Or(
			cmp.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
		)
	})
	return r.found
}
