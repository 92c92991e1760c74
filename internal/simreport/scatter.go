package simreport

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/simtune"
)

// scatter draws policies as points: those of the search faintly, those of the table with a number and
// their intervals.
func scatter(r *simtune.Result, title string, mx, my simtune.Measure) chart {
	c := frame(title, "", strings.TrimSpace("decision latency "+mx.Heading()+" ("+mx.Unit()+")"), strings.TrimSuffix(my.Heading()+" ("+my.Unit()+")", " ()"))
	x, y := scatterAxes(r, mx, my)
	c.XTicks, c.YTicks = x.ticks(), y.ticks()
	for _, v := range r.Cloud {
		if v[mx] >= x.low && v[mx] <= x.high && v[my] <= y.high {
			c.Dots = append(c.Dots, dot{X: at(x.position(v[mx])), Y: at(y.position(v[my])), R: "2.5", Class: "tried"})
		}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		cx, cy := row.Cells[mx], row.Cells[my]
		px, py := x.position(cx.Mean), y.position(cy.Mean)
		class := "shown"
		switch {
		case i == r.Recommended:
			class = "chosen"
		case row.Front:
			class = "front"
		}
		c.Dots = append(c.Dots, dot{
			X: at(px), Y: at(py), R: "5", Class: class,
			Title: fmt.Sprintf("%s: %s %s, %s %s", row.Name, mx.Heading(), number(cx.Mean, mx), my.Heading(), number(cy.Mean, my)),
		})
		c.Whiskers = append(c.Whiskers,
			whisker{segment(x.position(cx.Mean-cx.Half), py, x.position(cx.Mean+cx.Half), py)},
			whisker{segment(px, y.position(cy.Mean-cy.Half), px, y.position(cy.Mean+cy.Half))})
	}
	c.Labels = scatterLabels(r, x, y, mx, my)
	return c
}

// scatterAxes hold what the table has. What the search has tried may be far out, and is left out then.
func scatterAxes(r *simtune.Result, mx, my simtune.Measure) (x, y axis) {
	x = axis{low: math.Inf(1), from: left, to: right, log: true}
	y = axis{from: bottom, to: top}
	for i := range r.Rows {
		cx, cy := r.Rows[i].Cells[mx], r.Rows[i].Cells[my]
		x.low, x.high = min(x.low, cx.Mean), max(x.high, cx.Mean)
		y.high = max(y.high, cy.Mean+cy.Half)
	}
	x.low, x.high = max(x.low, 0.01), max(x.high, 0.01)
	if x.high > 5*x.low {
		x.low, x.high = x.low/1.6, x.high*1.6
	} else { // a logarithmic one would have hardly a tick
		x = axis{low: 0, high: x.high * 1.3, from: left, to: right}
	}
	y.high = max(y.high*1.15, 0.01)
	return x, y
}

// box is where something stands.
type box struct{ left, top, right, bottom float64 }

func (b box) meets(o box) bool {
	return b.left <= o.right && o.left <= b.right && b.top <= o.bottom && o.top <= b.bottom
}

// pointName is what a row is called in a chart: its number in the table, and of the two that matter
// most the name.
func pointName(r *simtune.Result, i int) string {
	if i == 0 || i == r.Recommended {
		return r.Rows[i].Name
	}
	return strconv.Itoa(i + 1)
}

// scatterLabels name the points, each at the nearest of a few places where it is on nothing else. What
// finds none is left out, and the table has it.
func scatterLabels(r *simtune.Result, x, y axis, mx, my simtune.Measure) []label {
	place := func(i int) (float64, float64) {
		return x.position(r.Rows[i].Cells[mx].Mean), y.position(r.Rows[i].Cells[my].Mean)
	}
	var taken []box
	order := []int{r.Recommended}
	for i := range r.Rows {
		px, py := place(i)
		taken = append(taken, box{px - 5, py - 5, px + 5, py + 5})
		if i != r.Recommended {
			order = append(order, i)
		}
	}
	var all []label
	for _, i := range order {
		px, py := place(i)
		wide := 7.5 * float64(len(pointName(r, i)))
		for try := range 28 {
			// To the right and the left of the point, then above and below those places.
			up := float64((try/2+1)/2) * 7
			if try/2%2 == 1 {
				up = -up
			}
			from, b := px+8, box{px + 8, py - up - 8, px + 8 + wide, py - up + 4}
			anchor := "start"
			if try%2 == 1 {
				from, b, anchor = px-8, box{px - 8 - wide, py - up - 8, px - 8, py - up + 4}, "end"
			}
			inside := b.left >= left && b.right <= width && b.top >= 4 && b.bottom <= bottom+2
			if !inside || slices.ContainsFunc(taken, b.meets) {
				continue
			}
			taken = append(taken, b)
			all = append(all, label{at(from), at(py - up + 4), pointName(r, i), anchor, "value"})
			break
		}
	}
	return all
}

func segment(x1, y1, x2, y2 float64) string {
	var d strings.Builder
	pathTo(&d, true, x1, y1)
	pathTo(&d, false, x2, y2)
	return d.String()
}

// number writes a measure with its unit.
func number(v float64, m simtune.Measure) string {
	return strings.TrimSpace(tickText(math.Round(v*1000)/1000) + " " + m.Unit())
}
