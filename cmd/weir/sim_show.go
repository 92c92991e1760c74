package main

import (
	"io"
	"io/fs"
	"strings"

	"github.com/weirhq/weir/sim/scenario"
	"github.com/weirhq/weir/sim/scenarios"
)

type simShowCmd struct {
	Name string `arg:"" complete:"scenarios" placeholder:"SCENARIO" help:"A name from weir sim list, or of a file that one of them names."`
}

// Help is the command's long help.
func (*simShowCmd) Help() string {
	return `Prints the YAML of a scenario, to be read, or to be copied and changed.

    weir sim show overload > mine.yaml
    weir sim run mine.yaml/p90`
}

// Run prints the file.
func (c *simShowCmd) Run(std *stdio) error {
	data, err := scenarios.Files.ReadFile(c.Name)
	if err == nil {
		_, err = std.out.Write(data)
		return err
	}
	if _, err := scenario.Embedded(c.Name); err != nil {
		return usage(err)
	}
	text, err := scenario.Source(c.Name)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(std.out, text); err != nil {
		return err
	}
	beside, err := namedIn(text)
	for _, name := range beside {
		std.note("it names a file: weir sim show %s > %s", name, name)
	}
	return err
}

// namedIn are the library's other files that a scenario names.
func namedIn(text string) ([]string, error) {
	all, err := fs.Glob(scenarios.Files, "*.txt")
	if err != nil {
		return nil, err
	}
	var named []string
	for _, name := range all {
		if strings.Contains(text, "file "+name) {
			named = append(named, name)
		}
	}
	return named, nil
}
