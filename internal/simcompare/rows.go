package simcompare

import (
	"strconv"
	"strings"

	"github.com/weirhq/weir/sim"
)

// A Row is a scalar under all policies.
type Row struct {
	Name   string
	Doc    string
	Better Direction
	Cells  []Cell // in the order of columns
	group  int
}

// A Cell is a scalar under one policy.
type Cell struct {
	sim.Spread
	// Best marks the best of its row, and those that the seeds do not tell from it. None is marked
	// if all are alike.
	Best bool
}

// Rows returns the scalars that a table shows, the chosen few or all, without those of which no
// policy has a value.
func (c *Comparison) Rows(all bool) []Row { return c.RowsOf(Choice{every: all}) }

// RowsOf is [Comparison.Rows] for any choice of scalars.
func (c *Comparison) RowsOf(choice Choice) []Row {
	var rows []Row
	for _, p := range places() {
		if !choice.shows(p.scalar.Name) {
			continue
		}
		row := Row{Name: p.scalar.Name, Doc: p.scalar.Doc, Better: Better(p.scalar.Name), group: p.group}
		has := false
		for _, column := range c.Columns {
			row.Cells = append(row.Cells, Cell{Spread: column.Seeds.Scalars[p.index]})
			has = has || column.Seeds.Scalars[p.index].Runs > 0
		}
		if !has {
			continue
		}
		c.mark(&row, p.index)
		rows = append(rows, row)
	}
	return rows
}

// inFull writes out what a line of the scalars' list leaves to the lines above it, of which same
// is kept.
func inFull(doc string, same *string) string {
	rest, short := strings.CutPrefix(doc, "the same")
	switch {
	case !short:
		*same = doc
	case strings.HasPrefix(rest, ", "):
		if i := strings.LastIndex(*same, ", "); i >= 0 {
			return (*same)[:i] + rest
		}
		return *same + rest
	case strings.HasPrefix(rest, " of all "), strings.HasPrefix(rest, " in "):
		return *same + "," + rest
	case strings.HasPrefix(rest, " of "):
		what, _, _ := strings.Cut(*same, " of ")
		return what + rest + (*same)[strings.LastIndex(*same, ", "):]
	}
	return doc
}

// mark finds the best cells. All policies played the same seeds, so what counts is the difference
// under each seed, and not how much seeds differ: a policy is told from the best if the 95 %
// interval of that difference leaves out 0.
func (c *Comparison) mark(row *Row, scalar int) {
	best := -1
	for i, cell := range row.Cells {
		if row.Better == Neither || cell.Runs == 0 {
			continue
		}
		if best < 0 || row.Better == Lower && cell.Mean < row.Cells[best].Mean || row.Better == Higher && cell.Mean > row.Cells[best].Mean {
			best = i
		}
	}
	if best < 0 {
		return
	}
	marked := 0
	for i := range row.Cells {
		cell := &row.Cells[i]
		cell.Best = cell.Runs > 0 && alike(c.Columns[best].values[scalar], c.Columns[i].values[scalar])
		if cell.Best {
			marked++
		}
	}
	if marked < len(row.Cells) {
		return
	}
	for i := range row.Cells {
		row.Cells[i].Best = false
	}
}

// alike tells whether the seeds do not tell a from b.
func alike(a, b []value) bool {
	var differences []float64
	for i := range a {
		if a[i].ok && b[i].ok {
			differences = append(differences, a[i].v-b[i].v)
		}
	}
	d := sim.SpreadOf("", differences)
	if d.Runs == 1 {
		return true // one difference may be chance
	}
	return d.Runs > 1 && d.Mean-d.Half <= 0 && 0 <= d.Mean+d.Half
}

// String writes the mean, and behind it half the width of its interval, which decides how many
// digits are worth writing. It writes a dash without a value, and no interval if all seeds come to
// the same or there is only one.
func (c Cell) String() string {
	switch {
	case c.Runs == 0:
		return "–"
	case c.Half == 0:
		return Number(c.Mean, 4)
	}
	digits := decimals(c.Half, 2)
	return strconv.FormatFloat(c.Mean, 'f', digits, 64) + " ± " + strconv.FormatFloat(c.Half, 'f', digits, 64)
}

// Number writes v with so many significant digits, or all that are in front of the point.
func Number(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', decimals(v, digits), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// decimals returns how many digits behind the point make so many significant ones of v, at most 6.
func decimals(v float64, digits int) int {
	if v == 0 {
		return 0
	}
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e")
	e, err := strconv.Atoi(exponent)
	if err != nil { // infinite, or no number
		return 0
	}
	return min(max(digits-1-e, 0), 6)
}
