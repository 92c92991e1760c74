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
func (c *Comparison) WriteTable(w io.Writer, choice Choice, width int) error {
	var b strings.Builder
	writeWrapped(&b, c.Title(), width)
	writeWrapped(&b, c.Played(), width)
	rows := c.RowsOf(choice)
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = strings.TrimSpace(r.Name + " " + r.Better.String())
	}
	columns, heads := c.texts(rows)
	t := table{names: names, columns: columns, heads: heads}
	if choice.headed() {
		t.titles = titles(rows)
	}
	t.write(&b, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// titles are what stands above each row: the title of its group above the first of it, if there are
// several groups, and else nothing.
func titles(rows []Row) []string {
	if len(rows) == 0 || rows[0].group == rows[len(rows)-1].group {
		return nil
	}
	all := make([]string, len(rows))
	for i, r := range rows {
		if i == 0 || r.group != rows[i-1].group {
			all[i] = groups[r.group].Title
		}
	}
	return all
}

// table is the text of a table.
type table struct {
	names   []string   // of rows
	columns [][]string // each begins with the lines of its head
	heads   int        // how many lines that are
	titles  []string   // above rows, where they are not empty; nil if none are
}

// write prints the table, and below it the columns that are too many for the width.
func (t *table) write(b *strings.Builder, width int) {
	first := textWidth(t.names)
	for from := 0; from < len(t.columns); {
		line, to := first, from
		for to < len(t.columns) && (to == from || line+len(gap)+textWidth(t.columns[to]) <= width) {
			line += len(gap) + textWidth(t.columns[to])
			to++
		}
		b.WriteString("\n")
		t.writeBlock(b, t.columns[from:to], first)
		from = to
	}
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

func (t *table) writeBlock(b *strings.Builder, columns [][]string, first int) {
	for y := range t.heads + len(t.names) {
		line := ""
		if row := y - t.heads; row >= 0 {
			line = t.names[row]
			if len(t.titles) > row && t.titles[row] != "" {
				b.WriteString("\n" + t.titles[row] + "\n")
			}
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

// Wrap breaks a text at blanks into lines of at most so many characters, if its words are not longer.
func Wrap(text string, width int) []string { return wrapAt(text, " ", width) }

// writeWrapped writes a text in lines of at most so many characters.
func writeWrapped(b *strings.Builder, text string, width int) {
	for _, line := range Wrap(text, width) {
		b.WriteString(line + "\n")
	}
}

// wrap breaks a name behind blanks, hyphens and underscores into lines of at most so many characters, if its
// words are not longer.
func wrap(name string, width int) []string { return wrapAt(name, " -_", width) }

// wrapAt breaks a text behind any of the breaks.
func wrapAt(name, breaks string, width int) []string {
	var lines []string
	line := ""
	for name != "" {
		end := strings.IndexAny(name, breaks) + 1
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
func (c *Comparison) WriteMarkdown(w io.Writer, choice Choice) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**: %s %s.\n\n|", escape(c.Scenario.Name), escape(c.Scenario.Purpose), c.Played())
	for _, column := range c.Columns {
		fmt.Fprintf(&b, " | %s", escape(column.Name))
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---", len(c.Columns)) + "|\n")
	for _, r := range c.RowsOf(choice) {
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
