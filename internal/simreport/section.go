package simreport

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
)

// Colors and dashes, of which each policy has one. The first policy's line is thick and whole, and
// those of the others, which may lie on it, are dashed.
const (
	colors = 7
	dashes = 6
)

// look is the class of a policy's line.
func look(i int) string {
	if i == 0 {
		return "c0 d0"
	}
	return fmt.Sprintf("c%d d%d", i%colors, 1+(i-1)%dashes)
}

func newSection(n int, p *Part) section {
	c := p.Comparison
	s := section{
		Anchor: "scenario-" + strconv.Itoa(n+1), Name: c.Scenario.Name, Purpose: c.Scenario.Purpose, Played: c.Played(),
		Faults: faultViews(c.Scenario), Text: p.Text,
	}
	for i, column := range c.Columns {
		s.Policies = append(s.Policies, series{column.Name, column.Policy.String(), look(i)})
	}
	all := c.Rows(true)
	s.Tables = [2]tableView{{s.Policies, c.Rows(false)}, {s.Policies, all}}
	s.Glance = glances(c, all)
	s.Charts = []chart{
		latencyChart(c, s.Policies),
		availabilityChart(c, s.Policies, s.Faults),
		falseChart(c, all),
		datagramChart(c, all),
		disagreementChart(c, s.Policies, s.Faults),
	}
	for i := range s.Charts {
		s.Charts[i].ID = s.Anchor + "-chart-" + strconv.Itoa(i+1)
	}
	return s
}

// glanced are the measures of which the page first says who is best.
var glanced = []struct{ scalar, what, unit string }{
	{"latency_p99_ms", "Fastest for 99 % of the requests", " ms"},
	{"availability_percent", "Decided most", " %"},
	{"excess_percent", "Let least beyond the limits", " %"},
	{"datagrams_per_decision", "Sent least for a decision", " datagrams"},
	{"goodput_percent", "Kept the protected work most useful", " %"},
}

// glances says who is best in what matters most. Of one policy there is nothing to say.
func glances(c *simcompare.Comparison, rows []simcompare.Row) []glance {
	if len(c.Columns) < 2 {
		return nil
	}
	var all []glance
	for _, g := range glanced {
		row := find(rows, g.scalar)
		if row == nil {
			continue
		}
		who, value := bestOf(c, row)
		if value != "" {
			value += g.unit
		}
		all = append(all, glance{g.what, who, value})
	}
	return all
}

// bestOf names the policies that are marked, and the best mean.
func bestOf(c *simcompare.Comparison, row *simcompare.Row) (who, value string) {
	var best, others []string
	mean := 0.0
	for i, cell := range row.Cells {
		if !cell.Best {
			others = append(others, c.Columns[i].Name)
			continue
		}
		if best == nil || row.Better == simcompare.Lower && cell.Mean < mean || row.Better == simcompare.Higher && cell.Mean > mean {
			mean = cell.Mean
		}
		best = append(best, c.Columns[i].Name)
	}
	switch {
	case best == nil:
		return "no difference", allValue(row)
	case len(others) == 1 && len(best) > 2:
		who = "all but " + others[0]
	default:
		who = strings.Join(best, ", ")
	}
	return who, simcompare.Number(mean, 3)
}

// allValue is the mean of all policies if it is the same, else nothing.
func allValue(row *simcompare.Row) string {
	value := simcompare.Number(row.Cells[0].Mean, 3)
	for _, cell := range row.Cells {
		if cell.Runs == 0 || simcompare.Number(cell.Mean, 3) != value {
			return ""
		}
	}
	return value
}

// find returns the row of a scalar, nil if no policy has a value of it.
func find(rows []simcompare.Row, name string) *simcompare.Row {
	for i := range rows {
		if rows[i].Name == name {
			return &rows[i]
		}
	}
	return nil
}
