package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/weirhq/weir/sim/scenario"
)

type simListCmd struct {
	JSON bool `help:"Print one JSON array."`
}

// Help is the command's long help.
func (*simListCmd) Help() string {
	return `Each name is one for weir sim run. A variant is the same scenario with some of its fields changed, and is named behind it, as in overload/min-off.

    weir sim list`
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
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, l := range list {
		fmt.Fprintf(table, "%s\t%s\n", l.Name, l.Purpose)
		if len(l.Variants) > 0 {
			fmt.Fprintf(table, "\t  variants: %s\n", strings.Join(l.Variants, ", "))
		}
	}
	return table.Flush()
}
