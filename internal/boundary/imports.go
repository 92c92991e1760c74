package boundary

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// checkImports holds the direct imports of one file of pkg against its room.
func checkImports(rep *report, f *ast.File, modulePath, pkg string, r Room) {
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it already
		}
		own, ours := below(path, modulePath)
		switch {
		case ours && isHidden(own) && !isHidden(pkg):
			rep.add(RuleHidden, spec.Pos(), "%s imports %s, which only a command may: move what it needs into a package of its own", pkg, own)
		case ours && !allows(r.Ours, own):
			rep.add(RuleImport, spec.Pos(), "%s may not import %s: dependencies go downwards only", pkg, own)
		case !ours && isThirdParty(path) && !slices.ContainsFunc(r.Modules, func(m string) bool { return isWithin(path, m) }):
			rep.add(RuleModule, spec.Pos(), "%s may not import %s: its room lists no such module", pkg, path)
		}
	}
}

// below returns the path of a package of the module, "." for its root.
func below(path, modulePath string) (string, bool) {
	if path == modulePath {
		return ".", true
	}
	return strings.CutPrefix(path, modulePath+"/")
}

// isHidden tells whether a package is a command or the demo, which nothing that
// people import may stand on.
func isHidden(pkg string) bool {
	return isWithin(pkg, "cmd") || isWithin(pkg, "internal/demo")
}

// isThirdParty tells an import of another module from one of the standard
// library, whose first element has no dot.
func isThirdParty(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

func isWithin(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
