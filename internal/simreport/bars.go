package simreport

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
)

// barLeft is where bars begin: names stand above them, so that long ones have room.
const (
	barLeft   = 14.0
	barRight  = 410.0 // behind it there is room for a number
	barThick  = 13.0
	barTop    = 8.0
	nameHigh  = 18.0
	groupGap  = 12.0
	axisBelow = 44.0
)

// part is one of the bars of each policy: its row, and how it looks.
type part struct {
	row  *simcompare.Row
	look series
}

// falseChart shows wrong decisions by policy, or over U if the policies differ in nothing else.
func falseChart(c *simcompare.Comparison, rows []simcompare.Row) chart {
	f := chart{Title: "Wrong decisions", Note: "Shorter is better. Measured against one perfect server; the thin line is the 95 % interval."}
	parts := []part{
		{find(rows, "false_grants_percent"), series{Name: "granted wrongly", Class: "k1"}},
		{find(rows, "false_denials_percent"), series{Name: "rejected wrongly", Class: "k2"}},
	}
	if parts[0].row == nil || parts[1].row == nil {
		return chart{Title: f.Title, Empty: "No request was decided."}
	}
	if top, _ := highest(parts, false); top == 0 {
		return chart{Title: f.Title, Empty: "None: every decision was that of one perfect server."}
	}
	if units := unitsOf(c); units != nil {
		return overUnits(c, parts, units)
	}
	f.XLabel = "decided requests (%)"
	return bars(f, c, parts, false)
}

// datagramChart shows what a decision costs on the network.
func datagramChart(c *simcompare.Comparison, rows []simcompare.Row) chart {
	f := chart{Title: "Datagrams for each decision", Note: "Shorter is cheaper. Replays are waited for; completion deliveries keep the servers alike.", XLabel: "datagrams for each decided request"}
	var parts []part
	for i, p := range []struct{ scalar, name string }{
		{"first_sends_per_decision", "first"},
		{"replays_per_decision", "replay"},
		{"completion_deliveries_per_decision", "completion delivery"},
		{"answers_per_decision", "answers"},
		{"reports_per_decision", "reports"},
	} {
		one := []part{{find(rows, p.scalar), series{Name: p.name, Class: fmt.Sprintf("k%d", i)}}}
		if one[0].row == nil {
			continue
		}
		if top, _ := highest(one, false); top > 0 {
			parts = append(parts, one[0])
		}
	}
	if parts == nil {
		return chart{Title: f.Title, Empty: "No request was decided."}
	}
	return bars(f, c, parts, true)
}

// highest returns the longest bar: of one part with its interval, or of all parts of a policy
// together.
func highest(parts []part, stacked bool) (most float64, policies int) {
	for i := range parts[0].row.Cells {
		sum := 0.0
		for _, p := range parts {
			if stacked {
				sum += p.row.Cells[i].Mean
			} else {
				sum = max(sum, p.row.Cells[i].Mean+p.row.Cells[i].Half)
			}
		}
		most = max(most, sum)
	}
	return most, len(parts[0].row.Cells)
}

// bars draws the parts of each policy below its name: behind each other, or below each other with
// their intervals.
func bars(f chart, c *simcompare.Comparison, parts []part, stacked bool) chart {
	most, policies := highest(parts, stacked)
	x := axis{low: 0, high: most, from: barLeft, to: barRight}
	if step := niceStep(most / 4); step > 0 {
		x.high = max(most, step)
	}
	each := barThick
	if !stacked {
		each *= float64(len(parts))
	}
	end := barTop + float64(policies)*(nameHigh+each+groupGap)
	f.Top, f.Bottom, f.Left, f.Right, f.Height = at(barTop), at(end), at(barLeft), at(barRight), end+axisBelow
	f.XTicks, f.Boxes = x.ticks(), true
	for _, p := range parts {
		f.Legend = append(f.Legend, p.look)
	}
	y := barTop
	for i := range policies {
		name := c.Columns[i].Name
		f.Labels = append(f.Labels, label{at(barLeft), at(y + nameHigh - 4), name, "start", "name"})
		y += nameHigh
		sum := 0.0
		for _, p := range parts {
			cell := p.row.Cells[i]
			bar := bar{
				X: at(x.position(sum)), Y: at(y), Width: at(x.position(sum+cell.Mean) - x.position(sum)), Height: at(barThick - 2),
				Class: p.look.Class, Title: fmt.Sprintf("%s, %s: %v", name, p.look.Name, cell),
			}
			if cell.Mean > 0 {
				f.Bars = append(f.Bars, bar)
			}
			if stacked {
				sum += cell.Mean
				continue
			}
			if cell.Half > 0 {
				f.Whiskers = append(f.Whiskers, whiskerAcross(x, cell, y+barThick/2-1))
			}
			f.Labels = append(f.Labels, label{at(x.position(cell.Mean+cell.Half) + 6), at(y + barThick - 2), simcompare.Number(cell.Mean, 3), "start", "value"})
			y += barThick
		}
		if stacked {
			f.Labels = append(f.Labels, label{at(x.position(sum) + 6), at(y + barThick - 2), simcompare.Number(sum, 3), "start", "value"})
			y += barThick
		}
		y += groupGap
	}
	return f
}

// whiskerAcross is an interval beside a bar.
func whiskerAcross(x axis, cell simcompare.Cell, y float64) whisker {
	var d strings.Builder
	from, to := x.position(cell.Mean-cell.Half), x.position(cell.Mean+cell.Half)
	pathTo(&d, true, from, y)
	pathTo(&d, false, to, y)
	for _, end := range []float64{from, to} {
		pathTo(&d, true, end, y-3)
		pathTo(&d, false, end, y+3)
	}
	return whisker{d.String()}
}
