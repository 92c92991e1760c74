package simtune

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/policy"
)

// Legend says how to read the table.
const Legend = "Mean over all scenarios ± half the width of the 95 % interval. Less is better everywhere. cost: of the default's, by the objective.\n+ on the Pareto front of these policies: none is better in one measure and worse in none. ! beyond a guard, see below."

// WriteTable prints the policies side by side as text.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	head := r.Header()
	rows := [][]string{head}
	for i := range r.Rows {
		rows = append(rows, r.Cells(i))
	}
	wide := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line += cell + pad
			} else {
				line += "  " + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\n" + Legend + "\n")
	b.WriteString(r.policies("", ""))
	b.WriteString("\n" + r.verdict("", "") + "\n")
	for _, line := range r.Why() {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("\n" + r.Effort() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown prints the same as Markdown.
func (r *Result) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(r.Header())
	b.WriteString("|" + strings.Repeat("---|", len(r.Header())) + "\n")
	for i := range r.Rows {
		row(r.Cells(i))
	}
	b.WriteString("\n" + strings.ReplaceAll(Legend, "\n", " ") + "\n")
	b.WriteString(r.policies("- ", "`"))
	b.WriteString("\n" + r.verdict("**", "`") + "\n\n")
	for _, line := range r.Why() {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("\n" + r.Effort() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Header is the head of the table.
func (r *Result) Header() []string {
	head := []string{"", "cost"}
	for _, m := range Measures() {
		head = append(head, strings.TrimSpace(m.Heading()+" "+m.Unit()))
	}
	return head
}

// Cells are the texts of a row of the table, its name first.
func (r *Result) Cells(i int) []string {
	row := &r.Rows[i]
	name := row.Name
	if row.Front {
		name += " +"
	}
	if row.Breaches != nil {
		name += " !"
	}
	cells := []string{name, simcompare.Cell{Spread: row.Cost}.String()}
	for _, cell := range row.Cells {
		cells = append(cells, simcompare.Cell{Spread: cell}.String())
	}
	return cells
}

// policies are the texts of those whose name does not say it, and what is wrong with policies.
func (r *Result) policies(bullet, quote string) string {
	text := ""
	for _, row := range r.Rows {
		if _, preset := policy.Preset(row.Name); !preset {
			text += bullet + row.Name + ": " + quote + Text(row.Policy) + quote + "\n"
		}
	}
	for _, line := range r.Breaches() {
		text += bullet + line + "\n"
	}
	if text == "" {
		return ""
	}
	return "\n" + text
}

// Breaches say which policies are beyond which guards.
func (r *Result) Breaches() []string {
	var lines []string
	for _, row := range r.Rows {
		for _, b := range row.Breaches {
			lines = append(lines, row.Name+" is beyond a guard: "+r.breach(b))
		}
	}
	return lines
}

// breach says which guard, and by how much.
func (r *Result) breach(b Breach) string {
	where := "over all scenarios"
	if b.Scenario >= 0 {
		where = "in " + r.Scenarios[b.Scenario]
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s is %s %s", b.Measure.Heading(), where, simcompare.Number(b.Value, 3), b.Measure.Unit())) +
		fmt.Sprintf(", and %s is allowed", simcompare.Number(b.Bound, 3))
}

// verdict is the recommendation.
func (r *Result) verdict(strong, quote string) string {
	if r.Recommended == 0 {
		return strong + "Recommended: the default." + strong + " " + r.Verdict()
	}
	return strong + "Recommended:" + strong + " " + quote + "--policy '" + Text(r.Rows[r.Recommended].Policy) + "'" + quote + "\n" + r.Verdict()
}

// Verdict says what the recommendation saves, or why it is the default.
func (r *Result) Verdict() string {
	text := r.saves()
	if undecided := r.Rows[r.Recommended].Values()[Undecided]; undecided > guardDecides {
		text += fmt.Sprintf(" But it leaves %s %% of the requests undecided: the horizon is too short for these round trips and losses. Allow a longer one with --max-horizon, and a key with that dedup_ttl.", simcompare.Number(undecided, 3))
	}
	return text
}

func (r *Result) saves() string {
	switch {
	case r.Recommended > 0:
		return fmt.Sprintf("It saves %s of the default's cost by %s.", r.gain(), r.Objective.Name)
	case r.Refuted == "":
		return "Nothing that was found beats it."
	}
	return fmt.Sprintf("The best that was found saves %s of its cost by %s, but %s.", r.gain(), r.Objective.Name, r.Refuted)
}

func (r *Result) gain() string {
	return fmt.Sprintf("%.0f %% (95 %% interval %.0f to %.0f)", r.Gain, r.GainLow, r.GainHigh)
}

// Why says in words what each number of the recommendation that is not the default's is worth.
func (r *Result) Why() []string {
	var lines []string
	for _, c := range r.Changes {
		line := fmt.Sprintf("%s, instead of: %s.", c.To, c.From)
		line = strings.ToUpper(line[:1]) + line[1:]
		if c.Gains != nil {
			line += " Bought: " + effects(c.Gains) + "."
		}
		if c.Losses != nil {
			line += " Costs: " + effects(c.Losses) + "."
		}
		if c.Gains == nil && c.Losses == nil {
			line += " By itself no measure tells it from the default's; it goes with the others."
		}
		lines = append(lines, line)
	}
	return lines
}

func effects(all []Effect) string {
	var parts []string
	for _, e := range all {
		unit := e.Measure.Unit()
		if unit != "" {
			unit = " " + unit
		}
		parts = append(parts, fmt.Sprintf("%s %s → %s%s", e.Measure.Heading(), simcompare.Number(e.Without, 3), simcompare.Number(e.With, 3), unit))
	}
	return strings.Join(parts, ", ")
}

// Effort says how much was tried, and with which seeds.
func (r *Result) Effort() string {
	first, last := r.ConfirmSeeds[0], r.ConfirmSeeds[len(r.ConfirmSeeds)-1]
	return fmt.Sprintf("%d policies tried in %d trials; found by %d seeds, chosen by %d others, and all figures are of fresh ones, %d to %d.",
		r.Tried, r.Trials, r.WalkSeeds, r.SelectSeeds, first, last)
}

// Text is a policy's text form in characters that every keyboard has.
func Text(p policy.Policy) string { return strings.ReplaceAll(p.String(), "µs", "us") }
