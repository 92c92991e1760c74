package scenario

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim/scenarios"
)

// Source returns the text of the file in which [Find] finds a scenario, with all its variants.
func Source(name string) (string, error) {
	if !isPath(name) {
		base, _, _ := strings.Cut(name, "/")
		data, err := scenarios.Files.ReadFile(base + ending)
		return string(data), withoutPath(err)
	}
	file, _ := splitVariant(name)
	data, err := readFile(os.DirFS(filepath.Dir(file)), filepath.Base(file))
	if err != nil {
		return "", yamlfile.InFile(file, err)
	}
	return string(data), nil
}

// Variants returns the names of all variants in the file in which [Find] finds a scenario, each as
// Find takes it.
func Variants(name string) ([]string, error) {
	base, _, _ := strings.Cut(name, "/")
	read := EmbeddedFile
	if isPath(name) {
		base, _ = splitVariant(name)
		read = LoadFile
	}
	f, err := read(base)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range f.Variants {
		names = append(names, base+strings.TrimPrefix(v.Name, f.Scenario.Name))
	}
	return names, nil
}
