package simcompare

import (
	"io"
	"strings"
	"unicode/utf8"
)

// indent is what stands in front of the scalars of a group.
const indent = "  "

// narrow is the least width in which what a scalar is stands beside it, and not below.
const narrow = 24

// WriteList prints what the first column came to: groups of scalars, a line for each with what it
// is, of at most so many characters if the width is a terminal's.
func (c *Comparison) WriteList(w io.Writer, choice Choice, width int) error {
	var b strings.Builder
	rows := c.RowsOf(choice)
	for from := 0; from < len(rows); {
		to := from
		for to < len(rows) && rows[to].group == rows[from].group {
			to++
		}
		if from > 0 {
			b.WriteString("\n")
		}
		b.WriteString(groups[rows[from].group].Title + "\n")
		writeGroup(&b, rows[from:to], width)
		from = to
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeGroup(b *strings.Builder, rows []Row, width int) {
	names, values := make([]string, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		names[i], values[i] = r.Name, r.Cells[0].String()
	}
	first, second := textWidth(names), textWidth(values)
	at := len(indent) + first + len(gap) + second + len(gap)
	if width-at < narrow {
		at = 2 * len(indent)
	}
	for i, r := range rows {
		line := indent + padded(names[i], first) + gap + padded(values[i], second)
		doc := Wrap(r.Doc, max(width-at, narrow))
		if at > 2*len(indent) {
			line += gap + doc[0]
			doc = doc[1:]
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, more := range doc {
			b.WriteString(strings.Repeat(" ", at) + more + "\n")
		}
	}
}

// padded fills a text up to a width.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", width-utf8.RuneCountInString(text))
}
