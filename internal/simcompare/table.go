package simcompare

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Title is the scenario's name and its purpose, on one line.
func (c *Comparison) Title() string {
	return strings.TrimSuffix(c.Scenario.Name+": "+c.Scenario.Purpose, ": ")
}

// Played says how long was played, and with which seeds.
func (c *Comparison) Played() string {
	if c.Seeds == 1 {
		return fmt.Sprintf("%v, seed %d", c.Scenario.Length, c.Seed)
	}
	return fmt.Sprintf("%v, seeds %d to %d: mean ± half the width of its 95 %% interval", c.Scenario.Length, c.Seed, c.Seed+uint64(c.Seeds)-1)
}

// gap is what stands between two columns of a table.
const gap = "  "

// WriteTable prints the comparison as text of at most so many characters a line, if each column
// fits by itself. Columns that do not fit side by side are printed below.
func (c *Comparison) WriteTable(w io.Writer, all bool, width int) error {
	var b strings.Builder
	b.WriteString(c.Title() + "\n" + c.Played() + "\n")
	rows := c.Rows(all)
	names := make([]string, len(rows))
	first := 0
	for i, r := range rows {
		names[i] = strings.TrimSpace(r.Name + " " + r.Better.String())
		first = max(first, utf8.RuneCountInString(names[i]))
	}
	columns, heads := c.texts(rows)
	for from := 0; from < len(columns); {
		line, to := first, from
		for to < len(columns) && (to == from || line+len(gap)+textWidth(columns[to]) <= width) {
			line += len(gap) + textWidth(columns[to])
			to++
		}
		b.WriteString("\n")
		writeBlock(&b, names, columns[from:to], heads, first)
		from = to
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// texts are the columns of the table: the lines of the head, of which there are as many in each
// column, and below the cells.
func (c *Comparison) texts(rows []Row) (columns [][]string, heads int) {
	for i, column := range c.Columns {
		body := make([]string, 0, len(rows))
		for _, r := range rows {
			mark := " "
			if r.Cells[i].Best {
				mark = "*"
			}
			body = append(body, r.Cells[i].String()+mark)
		}
		head := wrap(column.Name, max(textWidth(body)-1, 12))
		for j := range head {
			head[j] += " " // above the mark
		}
		heads = max(heads, len(head))
		columns = append(columns, append(head, body...))
	}
	for i, column := range columns {
		missing := heads + len(rows) - len(column)
		columns[i] = append(make([]string, missing, heads+len(rows)), column...)
	}
	return columns, heads
}

func writeBlock(b *strings.Builder, names []string, columns [][]string, heads, first int) {
	for y := range heads + len(names) {
		line := ""
		if y >= heads {
			line = names[y-heads]
		}
		line += strings.Repeat(" ", first-utf8.RuneCountInString(line))
		for _, column := range columns {
			line += gap + strings.Repeat(" ", textWidth(column)-utf8.RuneCountInString(column[y])) + column[y]
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// Legend explains the marks of tables.
const Legend = "↑ higher is better, ↓ lower is better. * is the best, and what these seeds do not tell from it."

func textWidth(lines []string) int {
	n := 0
	for _, l := range lines {
		n = max(n, utf8.RuneCountInString(l))
	}
	return n
}

// wrap breaks a name behind blanks and hyphens into lines of at most so many characters, if its
// words are not longer.
func wrap(name string, width int) []string {
	var lines []string
	line := ""
	for name != "" {
		end := strings.IndexAny(name, " -") + 1
		if end == 0 {
			end = len(name)
		}
		word := name[:end]
		name = name[end:]
		if line != "" && utf8.RuneCountInString(line+strings.TrimSpace(word)) > width {
			lines = append(lines, strings.TrimSpace(line))
			line = ""
		}
		line += word
	}
	return append(lines, strings.TrimSpace(line))
}

// WriteMarkdown prints the comparison's table as Markdown. The best are in bold.
func (c *Comparison) WriteMarkdown(w io.Writer, all bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**: %s %s.\n\n|", escape(c.Scenario.Name), escape(c.Scenario.Purpose), c.Played())
	for _, column := range c.Columns {
		fmt.Fprintf(&b, " | %s", escape(column.Name))
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---", len(c.Columns)) + "|\n")
	for _, r := range c.Rows(all) {
		fmt.Fprintf(&b, "| %s", strings.TrimSpace("`"+r.Name+"` "+r.Better.String()))
		for _, cell := range r.Cells {
			text := cell.String()
			if cell.Best {
				text = "**" + text + "**"
			}
			fmt.Fprintf(&b, " | %s", text)
		}
		b.WriteString(" |\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escape takes what has a meaning in Markdown out of a text.
func escape(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if strings.ContainsRune("\\`*_{}[]<>|#&!~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
