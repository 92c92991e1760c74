package boundary

import (
	"go/ast"
	"go/token"
)

// checkDocs demands a package comment, and a comment on everything exported:
// types, functions, methods of exported types, constants, variables, and the
// methods of interfaces that have several. A comment behind the declaration
// counts, and one over a parenthesized group counts for the group. A struct's
// fields are its type's comment's to describe, or their own.
func checkDocs(rep *report, files []*ast.File) {
	if len(files) == 0 {
		return
	}
	documented := false
	for _, f := range files {
		documented = documented || f.Doc != nil
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || receiverExported(d.Recv)) {
					rep.add(RuleDoc, d.Pos(), "%s is exported and has no comment", d.Name.Name)
				}
			case *ast.GenDecl:
				docGroup(rep, d)
			}
		}
	}
	if !documented {
		rep.add(RuleDoc, files[0].Package, "package %s has no package comment", files[0].Name.Name)
	}
}

// docGroup checks one const, var or type declaration.
func docGroup(rep *report, d *ast.GenDecl) {
	if d.Tok == token.IMPORT {
		return
	}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					rep.add(RuleDoc, name.Pos(), "%s is exported and has no comment", name.Name)
				}
			}
		case *ast.TypeSpec:
			if !s.Name.IsExported() {
				continue
			}
			if d.Doc == nil && s.Doc == nil && s.Comment == nil {
				rep.add(RuleDoc, s.Pos(), "%s is exported and has no comment", s.Name.Name)
			}
			if t, ok := s.Type.(*ast.InterfaceType); ok {
				docMethods(rep, s.Name.Name, t)
			}
		}
	}
}

// docMethods checks the methods of an interface. Where there is just one, the
// type's comment describes it.
func docMethods(rep *report, name string, t *ast.InterfaceType) {
	if t.Methods.NumFields() < 2 {
		return
	}
	for _, m := range t.Methods.List {
		if m.Doc == nil && m.Comment == nil && len(m.Names) > 0 && m.Names[0].IsExported() {
			rep.add(RuleDoc, m.Pos(), "%s.%s is exported and has no comment", name, m.Names[0].Name)
		}
	}
}

// receiverExported tells whether the type that a method belongs to is exported.
func receiverExported(recv *ast.FieldList) bool {
	t := recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
