package simreport

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
)

// unitsOf returns U of each policy in milliseconds, if there are several policies and they differ
// in that alone, else nil.
func unitsOf(c *simcompare.Comparison) []float64 {
	first := c.Columns[0].Policy
	var units []float64
	for i := range c.Columns {
		p := c.Columns[i].Policy
		unit := p.Unit
		p.Unit = first.Unit
		if p != first {
			return nil
		}
		units = append(units, float64(unit)/1e6)
	}
	if len(units) < 2 || slices.Min(units) == slices.Max(units) {
		return nil
	}
	return units
}

// overUnits draws a line for each part over U.
func overUnits(c *simcompare.Comparison, parts []part, units []float64) chart {
	f := frame("Wrong decisions by U", "Lower is better. Measured against one perfect server; the thin lines are 95 % intervals.", "U, the policy's unit (ms)", "decided requests (%)")
	most, _ := highest(parts, false)
	least, greatest := slices.Min(units), slices.Max(units)
	x := axis{low: least / 1.15, high: greatest * 1.15, from: left, to: right, log: true}
	step := niceStep(most / 5)
	y := axis{low: 0, high: most + step/5, from: bottom, to: top}
	f.YTicks = y.ticks()
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if units[a] < units[b] {
			return -1
		}
		if units[a] > units[b] {
			return 1
		}
		return 0
	})
	lastTick := left - 100
	for _, i := range order {
		// Ticks are the policies' own, but where they would lie on each other.
		if p := x.position(units[i]); p-lastTick >= 30 {
			f.XTicks = append(f.XTicks, tick{at(p), tickText(units[i])})
			lastTick = p
		}
	}
	for n, p := range parts {
		var d strings.Builder
		first := true
		for _, i := range order {
			cell := p.row.Cells[i]
			if cell.Runs == 0 {
				continue
			}
			// Side by side, so that intervals do not hide each other.
			px, py := x.position(units[i])+float64(4*n-2), y.position(cell.Mean)
			pathTo(&d, first, px, py)
			first = false
			f.Bars = append(f.Bars, bar{at(px - 3), at(py - 3), "6.0", "6.0", p.look.Class, c.Columns[i].Name + ", " + p.look.Name + ": " + cell.String()})
			if cell.Half > 0 {
				var w strings.Builder
				pathTo(&w, true, px, y.position(cell.Mean-cell.Half))
				pathTo(&w, false, px, y.position(cell.Mean+cell.Half))
				f.Whiskers = append(f.Whiskers, whisker{w.String()})
			}
		}
		f.Lines = append(f.Lines, line{d.String(), "of-" + p.look.Class, p.look.Name})
		f.Legend = append(f.Legend, p.look)
	}
	f.Boxes = true
	return f
}
