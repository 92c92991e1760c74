package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/sim/scenario"
)

// simJSON is what weir sim run came to.
type simJSON struct {
	Scenario string          `json:"scenario"`
	Purpose  string          `json:"purpose,omitempty"`
	Policy   string          `json:"policy"`
	Seed     string          `json:"seed"` // the first; many JSON readers lose digits of 64-bit numbers
	Seeds    *sim.Seeds      `json:"seeds"`
	Runs     []*sim.Measures `json:"runs"` // in the order of seeds
}

func writeSimJSON(w io.Writer, s *sim.Scenario, seed uint64, runs []*sim.Measures) error {
	return json.NewEncoder(w).Encode(simJSON{
		Scenario: s.Name, Purpose: s.Purpose, Policy: s.Policy.String(), Seed: strconv.FormatUint(seed, 10),
		Seeds: sim.Summarize(runs), Runs: runs,
	})
}

// writeRunHead says what was played, and which variants of it there are.
func writeRunHead(w io.Writer, name string, c *simcompare.Comparison, width int) error {
	variants, err := scenario.Variants(name)
	if err != nil {
		return err
	}
	lines := []string{c.Title(), fmt.Sprintf("%v by %v", c.Scenario.Length, c.Columns[0].Policy)}
	if c.Seeds == 1 {
		lines = append(lines, fmt.Sprintf("seed %d", c.Seed))
	} else {
		lines = append(lines, fmt.Sprintf("seeds %d to %d: mean ± half the width of its 95 %% interval", c.Seed, c.Seed+uint64(c.Seeds)-1))
	}
	if len(variants) > 0 {
		lines = append(lines, "variants: "+strings.Join(variants, ", "))
	}
	for _, line := range lines {
		fmt.Fprintln(w, strings.Join(simcompare.Wrap(line, width), "\n"))
	}
	_, err = fmt.Fprintln(w)
	return err
}
