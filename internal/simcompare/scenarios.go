package simcompare

import (
	"fmt"
	"io"
	"strings"
)

// WriteScenarios prints one table of several comparisons of one and the same policy: a line for each
// scenario, and a column for each scalar of which one of them has a value. It is as wide as
// [Comparison.WriteTable] makes it.
func WriteScenarios(w io.Writer, comparisons []Comparison, choice Choice, width int) error {
	var b strings.Builder
	writeWrapped(&b, playedBy(comparisons), width)
	t := table{}
	for i := range comparisons {
		t.names = append(t.names, comparisons[i].Scenario.Name)
	}
	measured := across(comparisons, choice)
	var heads [][]string
	for _, m := range measured {
		head := wrap(m.head(), max(textWidth(m.cells), 12))
		heads = append(heads, head)
		t.heads = max(t.heads, len(head))
	}
	for i, m := range measured {
		column := append(make([]string, t.heads-len(heads[i])), heads[i]...)
		t.columns = append(t.columns, append(column, m.cells...))
	}
	t.write(&b, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteScenariosMarkdown is [WriteScenarios] as Markdown.
func WriteScenariosMarkdown(w io.Writer, comparisons []Comparison, choice Choice) error {
	var b strings.Builder
	b.WriteString(escape(playedBy(comparisons)) + ".\n\n|")
	measured := across(comparisons, choice)
	for _, m := range measured {
		fmt.Fprintf(&b, " | %s", strings.TrimSpace("`"+m.name+"` "+m.better.String()))
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---", len(measured)) + "|\n")
	for i := range comparisons {
		fmt.Fprintf(&b, "| %s", escape(comparisons[i].Scenario.Name))
		for _, m := range measured {
			fmt.Fprintf(&b, " | %s", m.cells[i])
		}
		b.WriteString(" |\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// playedBy says under which policy scenarios were played, and how.
func playedBy(comparisons []Comparison) string {
	first := &comparisons[0]
	how := first.Played()
	for i := range comparisons {
		if comparisons[i].Scenario.Length != first.Scenario.Length {
			_, how, _ = strings.Cut(how, ", ")
			break
		}
	}
	return "policy " + first.Columns[0].Name + ": " + how
}

// measure is a scalar in all scenarios.
type measure struct {
	name   string
	better Direction
	cells  []string
}

func (m *measure) head() string { return strings.TrimSpace(m.name + " " + m.better.String()) }

// across returns the scalars of which one of the scenarios has a value.
func across(comparisons []Comparison, choice Choice) []measure {
	var all []measure
	for _, p := range places() {
		if !choice.shows(p.scalar.Name) {
			continue
		}
		m := measure{name: p.scalar.Name, better: Better(p.scalar.Name)}
		has := false
		for i := range comparisons {
			cell := Cell{Spread: comparisons[i].Columns[0].Seeds.Scalars[p.index]}
			m.cells = append(m.cells, cell.String())
			has = has || cell.Runs > 0
		}
		if has {
			all = append(all, m)
		}
	}
	return all
}
