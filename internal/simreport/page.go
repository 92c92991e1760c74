// Package simreport writes what runs of the simulator came to as one page of HTML, which needs
// nothing else: no network, no script. Charts are SVG in the page. What it is given appears in it
// escaped, and the same input is the same bytes.
package simreport

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
)

// A Page is what a report is about.
type Page struct {
	Command string // that made it, as it is to be typed again
	Version string // of the program
	Parts   []Part
}

// A Part is a scenario and what it came to.
type Part struct {
	Comparison *simcompare.Comparison
	Text       string // the scenario's file
}

//go:embed page.gohtml
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"breakable": breakable}).Parse(source))

// breakable lets a measure's name be broken behind its underscores.
func breakable(name string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(name), "_", "_<wbr>")) //nolint:gosec // it is escaped
}

// Write writes the page.
func Write(w io.Writer, p *Page) error {
	view := pageView{Title: "What the policies come to", Command: p.Command, Version: p.Version, Legend: simcompare.Legend}
	for i := range p.Parts {
		view.Sections = append(view.Sections, newSection(i, &p.Parts[i]))
	}
	if len(p.Parts) == 1 {
		view.Title = p.Parts[0].Comparison.Scenario.Name
	}
	return page.Execute(w, &view)
}

// pageView is what the template is given.
type pageView struct {
	Title, Command, Version, Legend string
	Sections                        []section
}

// section is a scenario.
type section struct {
	Anchor                string
	Name, Purpose, Played string
	Policies              []series
	Faults                []faultView
	Glance                []glance
	Charts                []chart
	Tables                [2]tableView // of the chosen measures, and of all
	Text                  string
}

// series is a policy: Class is its color and dashes.
type series struct {
	Name, Text, Class string
}

// tableView is a table of measures.
type tableView struct {
	Policies []series
	Rows     []simcompare.Row
}

// glance is a measure and who is best in it.
type glance struct {
	What, Who, Value string
}
