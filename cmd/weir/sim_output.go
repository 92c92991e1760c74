package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/weirhq/weir/sim"
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

// writeSimTable prints a line for each measure that the runs have.
func writeSimTable(w io.Writer, s *sim.Scenario, seed uint64, runs []*sim.Measures) error {
	fmt.Fprintln(w, strings.TrimSuffix(s.Name+": "+s.Purpose, ": "))
	fmt.Fprintf(w, "%v by %v\n", s.Length, s.Policy)
	if len(runs) == 1 {
		fmt.Fprintf(w, "seed %d\n\n", seed)
	} else {
		fmt.Fprintf(w, "seeds %d to %d: mean, and half the width of its 95 %% interval\n\n", seed, seed+uint64(len(runs))-1)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	scalars := sim.Scalars()
	for i, spread := range sim.Summarize(runs).Scalars {
		if spread.Runs == 0 {
			continue
		}
		half := ""
		if len(runs) > 1 {
			half = "\t"
			if spread.Runs > 1 {
				half = "± " + short(spread.Half) + "\t"
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s%s\n", spread.Name, short(spread.Mean), half, scalars[i].Doc)
	}
	return table.Flush()
}

// short writes a number with five significant digits, or all that are in front of the point.
func short(v float64) string {
	if math.Abs(v) >= 10_000 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}
