package gocheck_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/weirhq/weir/internal/gocheck"
)

func TestCheck(t *testing.T) {
	tests := []struct {
		name, src  string
		errs, hard int
	}{
		{"fine", "package p\n\nimport \"time\"\n\nvar d = time.Second\n", 0, 0},
		{"of this module", "package p\n\nimport \"github.com/weirhq/weir/ident\"\n\nvar id ident.ID\n", 0, 0},
		{"unused", "package p\n\nfunc f() { x := 1 }\n", 1, 0},
		{"undefined", "package p\n\nimport \"time\"\n\nvar d = time.Fortnight\n", 1, 1},
		{"both", "package p\n\nfunc f() { x := y }\n", 2, 1},
	}
	fset := token.NewFileSet()
	c := gocheck.New(fset, ".")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := parser.ParseFile(fset, "p.go", tt.src, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			info, errs, err := c.Check("p", []*ast.File{f})
			if err != nil {
				t.Fatal(err)
			}
			if info == nil || len(errs) != tt.errs || len(gocheck.Hard(errs)) != tt.hard {
				t.Errorf("errors %v, want %d and %d hard ones", errs, tt.errs, tt.hard)
			}
		})
	}
	t.Run("no such package", func(t *testing.T) {
		f, err := parser.ParseFile(fset, "p.go", "package p\n\nimport _ \"no/such/package\"\n", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Check("p", []*ast.File{f}); err == nil {
			t.Error("no error")
		}
	})
}
