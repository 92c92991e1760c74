package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/sim/scenario"
)

type simListCmd struct {
	JSON bool `help:"Print one JSON array."`
}

// Help is the command's long help.
func (*simListCmd) Help() string {
	return `Each name is one for weir sim run. A variant is the same scenario with some of its fields changed, and is named behind it, as in overload/min-off.

    weir sim list
    weir sim show overload
    weir sim run overload/min-off`
}

// listedScenario is a scenario as the list has it.
type listedScenario struct {
	Name     string   `json:"name"`
	Purpose  string   `json:"purpose"`
	Variants []string `json:"variants"`
}

// Run lists them.
func (c *simListCmd) Run(std *stdio) error {
	list := []listedScenario{}
	for _, name := range scenario.List() {
		f, err := scenario.EmbeddedFile(name)
		if err != nil {
			return err
		}
		l := listedScenario{name, f.Scenario.Purpose, []string{}}
		for _, v := range f.Variants {
			l.Variants = append(l.Variants, v.Name)
		}
		list = append(list, l)
	}
	if c.JSON {
		return json.NewEncoder(std.out).Encode(list)
	}
	return writeScenarioList(std.out, list, outputWidth(std))
}

// writeScenarioList writes a paragraph for each scenario, of at most so many characters a line.
func writeScenarioList(w io.Writer, list []listedScenario, width int) error {
	longest := 0
	for _, l := range list {
		longest = max(longest, len(l.Name))
	}
	beside := longest + 2
	for _, l := range list {
		lines := simcompare.Wrap(l.Purpose, width-beside)
		if len(l.Variants) > 0 {
			lines = append(lines, simcompare.Wrap("variants: "+strings.Join(l.Variants, ", "), width-beside)...)
		}
		name := l.Name
		for _, line := range lines {
			if _, err := fmt.Fprintf(w, "%-*s%s\n", beside, name, line); err != nil {
				return err
			}
			name = ""
		}
	}
	return nil
}
