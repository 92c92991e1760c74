package boundary

import (
	"go/ast"
	"go/build"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"

	"github.com/weirhq/weir/internal/gocheck"
)

// bannedImports are packages that a pure package must not import, with the rule
// that each would break. What lies below a path is banned with it.
var bannedImports = map[string]Rule{
	"sync":             RuleConcurrency,
	"context":          RuleConcurrency, // cancellation is a channel
	"math/rand":        RuleRandom,      // v1; of v2 only sources that are handed in
	"crypto/rand":      RuleRandom,
	"hash/maphash":     RuleRandom, // its seeds are random
	"net":              RuleIO,     // net/netip is only numbers
	"os":               RuleIO,
	"io/fs":            RuleIO,
	"io/ioutil":        RuleIO,
	"path/filepath":    RuleIO,
	"syscall":          RuleIO,
	"log":              RuleIO,
	"runtime":          RuleIO, // goroutines, memory and processors are the host's
	"plugin":           RuleIO,
	"golang.org/x/sys": RuleIO,
	"golang.org/x/net": RuleIO,
}

// allowedImports are harmless although something banned is above them.
var allowedImports = map[string]bool{
	"net/netip":    true,
	"math/rand/v2": true, // its functions are looked at one by one
	"log/slog":     true, // a value says how it is shown; slog's loggers are in bannedNames
}

// bannedNames are functions and variables that a pure package must not use.
var bannedNames = map[string]Rule{
	"time.Now": RuleClock, "time.Since": RuleClock, "time.Until": RuleClock,
	"time.Sleep": RuleClock, "time.After": RuleClock, "time.AfterFunc": RuleClock,
	"time.NewTimer": RuleClock, "time.NewTicker": RuleClock, "time.Tick": RuleClock,
	"time.Local": RuleClock, "time.LoadLocation": RuleClock,
	"maps.All": RuleMapOrder, "maps.Keys": RuleMapOrder, "maps.Values": RuleMapOrder,
	"fmt.Print": RuleIO, "fmt.Printf": RuleIO, "fmt.Println": RuleIO,
	"log/slog.Default": RuleIO, "log/slog.New": RuleIO, "log/slog.Log": RuleIO,
	"log/slog.Debug": RuleIO, "log/slog.Info": RuleIO, "log/slog.Warn": RuleIO, "log/slog.Error": RuleIO,
}

// seeded are the functions of math/rand/v2 that take their randomness as an
// argument; all others draw from the process.
var seeded = map[string]bool{"New": true, "NewPCG": true, "NewChaCha8": true, "NewZipf": true}

// checkPure holds the files of one pure package against the rules for those.
func checkPure(rep *report, tc *gocheck.Checker, path string, files []*ast.File) error {
	files, err := builtHere(rep.fset, files)
	if err != nil {
		return err
	}
	info, errs, err := tc.Check(path, files)
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		return errs[0]
	}
	for _, f := range files {
		for _, spec := range f.Imports {
			checkPureImport(rep, spec)
		}
		p := &purity{rep: rep, info: info, excuses: excusesOf(rep.fset, f)}
		ast.Inspect(f, p.visit)
		p.excuses.unused(rep)
	}
	return nil
}

// builtHere drops the files that are not compiled on this platform, which could
// not be type-checked together with the others.
func builtHere(fset *token.FileSet, files []*ast.File) ([]*ast.File, error) {
	var here []*ast.File
	for _, f := range files {
		dir, name := filepath.Split(fset.Position(f.Package).Filename)
		ok, err := build.Default.MatchFile(dir, name)
		if err != nil {
			return nil, err
		}
		if ok {
			here = append(here, f)
		}
	}
	return here, nil
}

func checkPureImport(rep *report, spec *ast.ImportSpec) {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil || allowedImports[path] {
		return
	}
	for banned, rule := range bannedImports {
		if isWithin(path, banned) {
			rep.add(rule, spec.Pos(), "a pure package may not import %s: what it brings is handed in by the runtime", path)
			return
		}
	}
}

// purity walks one file.
type purity struct {
	rep     *report
	info    *types.Info
	excuses *excuses
}

func (p *purity) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		p.rep.add(RuleConcurrency, n.Pos(), "a go statement: the runtime around a pure package owns the goroutines")
	case *ast.SelectStmt:
		p.rep.add(RuleConcurrency, n.Pos(), "a select: a pure package waits for nothing")
	case *ast.ChanType:
		p.rep.add(RuleConcurrency, n.Pos(), "a channel: hand out values instead")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			p.rep.add(RuleConcurrency, n.Pos(), "a receive from a channel: values are handed in")
		}
	case *ast.RangeStmt:
		p.checkRange(n)
	case *ast.Ident:
		p.checkName(n)
	}
	return true
}

// checkRange refuses ranges over channels, and over maps without an excuse.
func (p *purity) checkRange(n *ast.RangeStmt) {
	switch core(p.info.TypeOf(n.X)).(type) {
	case *types.Chan:
		p.rep.add(RuleConcurrency, n.Pos(), "a range over a channel: values are handed in")
	case *types.Map:
		p.checkOrder(n.Pos(), "a range over a map")
	}
}

// checkOrder refuses a use of a map's order that has no excuse.
func (p *purity) checkOrder(pos token.Pos, what string) {
	if !p.excuses.take(p.rep.fset.Position(pos).Line) {
		p.rep.add(RuleMapOrder, pos, "%s, whose order differs from run to run: sort it, or say with %s why that reaches no output", what, directive)
	}
}

// checkName refuses single functions of packages that are otherwise harmless.
func (p *purity) checkName(id *ast.Ident) {
	obj := p.info.Uses[id]
	if obj == nil || obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
		return
	}
	name := obj.Pkg().Path() + "." + obj.Name()
	rule, banned := bannedNames[name]
	if _, isFunc := obj.(*types.Func); isFunc && obj.Pkg().Path() == "math/rand/v2" && !seeded[obj.Name()] {
		rule, banned = RuleRandom, true
	}
	switch {
	case !banned:
	case rule == RuleMapOrder:
		p.checkOrder(id.Pos(), name)
	default:
		p.rep.add(rule, id.Pos(), "%s in a pure package: what it gives is handed in by the runtime", name)
	}
}

// core returns the type that decides how a value is ranged over: the underlying
// type, and for a type parameter that of its constraint when there is just one.
func core(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	param, ok := types.Unalias(t).(*types.TypeParam)
	if !ok {
		return t.Underlying()
	}
	iface, ok := param.Constraint().Underlying().(*types.Interface)
	if !ok || iface.NumEmbeddeds() != 1 {
		return nil
	}
	union, ok := iface.EmbeddedType(0).(*types.Union)
	if ok && union.Len() == 1 {
		return union.Term(0).Type().Underlying()
	}
	return iface.EmbeddedType(0).Underlying()
}
