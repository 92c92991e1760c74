package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenarios"
)

// maxFile is the longest file that is read, in bytes.
const maxFile = 64 << 20

const ending = ".yaml"

// List returns the names of the library's scenarios, in alphabetical order.
func List() []string {
	found, err := fs.Glob(scenarios.Files, "*"+ending)
	if err != nil { // the pattern is malformed
		return nil
	}
	for i, name := range found {
		found[i] = strings.TrimSuffix(name, ending)
	}
	return found
}

// Embedded returns a scenario of the library by its name, or one of its variants, as in
// "overload/min-off".
func Embedded(name string) (*sim.Scenario, error) {
	name, variant, _ := strings.Cut(name, "/")
	f, err := EmbeddedFile(name)
	if err != nil {
		return nil, err
	}
	return f.pick(variant)
}

// EmbeddedFile returns a scenario of the library by its name, and its variants.
func EmbeddedFile(name string) (*File, error) {
	data, err := scenarios.Files.ReadFile(name + ending)
	if err != nil {
		if near := nearest(name, List()); near != "" {
			return nil, fmt.Errorf("scenario: the library has no %q; did you mean %s?", name, near)
		}
		return nil, fmt.Errorf("scenario: the library has no %q; it has %s; a file is given with its ending, such as shop.yaml", name, strings.Join(List(), ", "))
	}
	f, err := ParseFile(data, scenarios.Files.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", yamlfile.InFile(name+ending, err))
	}
	f.setName(name)
	return f, nil
}

// Load reads a scenario from a file, which may name others beside it. It is named as the file
// is, unless the file says otherwise. A variant is named behind the path, as in
// "shop.yaml/no-pacing".
func Load(path string) (*sim.Scenario, error) {
	file, variant := splitVariant(path)
	f, err := LoadFile(file)
	if err != nil {
		return nil, err
	}
	return f.pick(variant)
}

// splitVariant takes a variant's name off a path.
func splitVariant(path string) (file, variant string) {
	if _, err := os.Stat(path); err == nil {
		return path, ""
	}
	// A variant, unless what is in front of it is no file either.
	if info, err := os.Stat(filepath.Dir(path)); err == nil && info.Mode().IsRegular() {
		return filepath.Dir(path), filepath.Base(path)
	}
	return path, ""
}

// LoadFile reads a scenario and its variants from a file.
func LoadFile(path string) (*File, error) {
	dir := os.DirFS(filepath.Dir(path))
	data, err := readFile(dir, filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", yamlfile.InFile(path, err))
	}
	f, err := ParseFile(data, func(name string) ([]byte, error) { return readBeside(dir, name) })
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", yamlfile.InFile(path, err))
	}
	f.setName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	return f, nil
}

// Find returns the scenario that a user names: a path if it looks like one, with a directory or
// an ending, else one of the library.
func Find(name string) (*sim.Scenario, error) {
	if isPath(name) {
		return Load(name)
	}
	return Embedded(name)
}

// isPath tells a path from a name in the library, which may have a variant.
func isPath(name string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	if strings.ContainsAny(first, `.:\`) || first == "" {
		return true
	}
	_, err := fs.Stat(scenarios.Files, first+ending)
	if err == nil {
		return false
	}
	_, err = os.Stat(name)
	return err == nil
}

// pick returns one of the file's scenarios; no name is the scenario itself.
func (f *File) pick(variant string) (*sim.Scenario, error) {
	if variant == "" {
		return f.Scenario, nil
	}
	known := make([]string, len(f.Variants))
	for i, v := range f.Variants {
		known[i] = strings.TrimPrefix(v.Name, f.Scenario.Name+"/")
		if known[i] == variant {
			return v, nil
		}
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("scenario: %s has no variants", f.Scenario.Name)
	}
	return nil, fmt.Errorf("scenario: %s has no variant %q; it has %s", f.Scenario.Name, variant, strings.Join(known, ", "))
}

// readBeside reads a data file. A pipe that nobody writes to would hold the reader up for good.
func readBeside(dir fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(dir, name)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // of a directory the reader tells
		return nil, errors.New("it is no regular file")
	}
	return readFile(dir, name)
}

// ReadData reads a data file by its path, for [Dist]: a regular one of at most 64 MiB.
func ReadData(path string) ([]byte, error) {
	return readBeside(os.DirFS(filepath.Dir(path)), filepath.Base(path))
}

// readFile reads a file that is not below the directory only by way of a symlink.
func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	return data, withoutPath(err)
}

// withoutPath takes the path out of an error whose reader knows it.
func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
