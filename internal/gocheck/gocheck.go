// Package gocheck type-checks Go source that lies anywhere, a fixture or a
// document's snippet, as if it were part of this module. It asks the go command
// for the export data of what the source imports, so that it needs no
// third-party loader.
package gocheck

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// A Checker type-checks packages one after the other, and remembers the export
// data of their imports. It is not for concurrent use.
type Checker struct {
	fset    *token.FileSet
	dir     string
	exports map[string]string // import path to export data file
	imp     types.Importer
}

// New returns a Checker of files parsed into fset. The go command runs in dir,
// which decides the module whose packages can be imported.
func New(fset *token.FileSet, dir string) *Checker {
	c := &Checker{fset: fset, dir: dir, exports: map[string]string{}}
	c.imp = importer.ForCompiler(fset, "gc", c.open)
	return c
}

// Load finds the export data of the packages that files import. Loading many
// files at once is much quicker than one after the other; Check loads what is
// missing.
func (c *Checker) Load(files []*ast.File) error {
	var missing []string
	for _, f := range files {
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil || path == "unsafe" || c.exports[path] != "" || slices.Contains(missing, path) {
				continue
			}
			missing = append(missing, path)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "--"}
	cmd := exec.Command("go", append(args, missing...)...) //nolint:noctx // it ends by itself, and the test that runs it has a deadline
	cmd.Dir = c.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("gocheck: go list of %s: %w\n%s", strings.Join(missing, " "), err, stderr.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if file != "" {
			c.exports[path] = file
		}
	}
	return nil
}

// Check type-checks one package. It returns what it found out even where there
// are errors, which are all of the type checker's, soft ones such as an unused
// variable included; see [Hard].
func (c *Checker) Check(path string, files []*ast.File) (*types.Info, []types.Error, error) {
	if err := c.Load(files); err != nil {
		return nil, nil, err
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	var errs []types.Error
	conf := types.Config{Importer: c.imp, Error: func(err error) {
		if te, ok := err.(types.Error); ok { //nolint:errorlint // the documented type of what Error is called with
			errs = append(errs, te)
		}
	}}
	_, err := conf.Check(path, c.fset, files, info)
	if err != nil && len(errs) == 0 {
		return info, nil, err
	}
	return info, errs, nil
}

// Hard returns the errors that are not soft: a soft one leaves the program's
// meaning clear, an unused variable or import for example.
func Hard(errs []types.Error) []types.Error {
	return slices.DeleteFunc(slices.Clone(errs), func(e types.Error) bool { return e.Soft })
}

// open is the importer's way to the export data.
func (c *Checker) open(path string) (io.ReadCloser, error) {
	file, ok := c.exports[path]
	if !ok {
		return nil, fmt.Errorf("gocheck: no export data for %s", path)
	}
	return os.Open(file)
}
