package doccheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/gocheck"
)

// fragmentImports are the packages that a fragment may use without importing
// them, by the name it uses.
var fragmentImports = map[string]string{
	"weir":      "github.com/weirhq/weir",
	"apikey":    "github.com/weirhq/weir/apikey",
	"core":      "github.com/weirhq/weir/core",
	"discovery": "github.com/weirhq/weir/discovery",
	"dnszone":   "github.com/weirhq/weir/dnszone",
	"ident":     "github.com/weirhq/weir/ident",
	"limiter":   "github.com/weirhq/weir/limiter",
	"policy":    "github.com/weirhq/weir/policy",
	"server":    "github.com/weirhq/weir/server",
	"session":   "github.com/weirhq/weir/session",
	"sim":       "github.com/weirhq/weir/sim",
	"wire":      "github.com/weirhq/weir/wire",
	"context":   "context",
	"errors":    "errors",
	"fmt":       "fmt",
	"http":      "net/http",
	"io":        "io",
	"log":       "log",
	"netip":     "net/netip",
	"os":        "os",
	"rand":      "crypto/rand",
	"slog":      "log/slog",
	"time":      "time",
}

// A snippet is a Go block made into a file.
type snippet struct {
	doc      *Document
	block    Block
	file     *ast.File
	shift    int  // lines that were put before the block's code
	fragment bool // soft errors do not count
}

// GoCode compiles the Go blocks of docs. The go command runs in dir.
func GoCode(dir string, docs []*Document) ([]Problem, error) {
	fset := token.NewFileSet()
	var found []Problem
	var all []snippet
	var files []*ast.File
	for _, d := range docs {
		for _, b := range d.Blocks {
			if b.Lang != "go" {
				continue
			}
			s, err := parseBlock(fset, d, b)
			if err != nil {
				found = append(found, Problem{d.Path, b.Line, err.Error()})
				continue
			}
			all, files = append(all, s), append(files, s.file)
		}
	}
	checker := gocheck.New(fset, dir)
	if err := checker.Load(files); err != nil {
		return found, err
	}
	for _, s := range all {
		_, errs, err := checker.Check("snippet", []*ast.File{s.file})
		if err != nil {
			return found, err
		}
		if s.fragment {
			errs = gocheck.Hard(errs)
		}
		for _, e := range errs {
			line := s.block.Line + fset.Position(e.Pos).Line - 1 - s.shift
			found = append(found, Problem{s.doc.Path, line, e.Msg})
		}
	}
	return found, nil
}

// parseBlock makes a file of a block: it is one already, or declarations, or
// the body of a function.
func parseBlock(fset *token.FileSet, d *Document, b Block) (snippet, error) {
	s := snippet{doc: d, block: b}
	var err error
	if s.file, err = parse(fset, b.Code); err == nil {
		return s, nil
	}
	if packageClause.MatchString(b.Code) {
		return s, err
	}
	s.fragment = true
	head := "package snippet\n" + importsOf(b)
	if s.file, err = parse(fset, head+b.Code); err == nil {
		s.shift = strings.Count(head, "\n")
		return s, nil
	}
	signature, ok := strings.CutPrefix(b.Note, "go:")
	if !ok {
		signature = "()"
	}
	head += "func _" + strings.TrimSpace(signature) + " {\n"
	s.shift = strings.Count(head, "\n")
	// The panic ends the function whatever its results.
	s.file, err = parse(fset, head+b.Code+"\npanic(0)\n}\n")
	return s, err
}

func parse(fset *token.FileSet, src string) (*ast.File, error) {
	return parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
}

var (
	packageClause = regexp.MustCompile(`(?m)^package \w+`)
	qualifier     = regexp.MustCompile(`\b([a-z]\w*)\.[A-Z]`)
)

// importsOf returns the import declarations that a fragment and its signature
// need.
func importsOf(b Block) string {
	var names []string
	for _, m := range qualifier.FindAllStringSubmatch(b.Note+"\n"+b.Code, -1) {
		if fragmentImports[m[1]] != "" && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	var s strings.Builder
	for _, n := range names {
		fmt.Fprintf(&s, "import %s %q\n", n, fragmentImports[n])
	}
	return s.String()
}
