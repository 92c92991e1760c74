package simreport

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/internal/simtune"
	"github.com/weirhq/weir/sim"
)

// A TunePage is what a report about a search for a policy is about.
type TunePage struct {
	Command   string // that made it, as it is to be typed again
	Version   string // of the program
	Network   string // that was tuned for, in words
	Scenarios []*sim.Scenario
	Result    *simtune.Result
}

//go:embed tune.gohtml
var tuneSource string

var tunePage = template.Must(template.Must(page.Clone()).Parse(tuneSource))

// WriteTune writes the page.
func WriteTune(w io.Writer, p *TunePage) error {
	r := p.Result
	view := tuneView{
		Command: p.Command, Version: p.Version, Network: p.Network, Legend: simtune.Legend, Effort: r.Effort(),
		Better: r.Recommended > 0, Verdict: r.Verdict(), Text: simtune.Text(r.Rows[r.Recommended].Policy), Why: r.Why(),
		Head: r.Header(), Breaches: r.Breaches(), Glance: tuneGlance(r), Charts: tuneCharts(r),
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := r.Cells(i)
		cells[0] = fmt.Sprintf("%d  %s", i+1, cells[0])
		view.Rows = append(view.Rows, tuneRow{cells, i == r.Recommended})
		view.Policies = append(view.Policies, series{Name: row.Name, Text: simtune.Text(row.Policy)})
	}
	for i, s := range p.Scenarios {
		view.Scenarios = append(view.Scenarios, glance{What: s.Name, Who: s.Purpose, Value: fmt.Sprint(r.Weights[i])})
	}
	return tunePage.ExecuteTemplate(w, "tune", &view)
}

// tuneView is what the template is given.
type tuneView struct {
	Command, Version, Network, Legend, Effort string
	Better                                    bool
	Verdict, Text                             string
	Why, Head, Breaches                       []string
	Glance, Scenarios                         []glance
	Charts                                    []chart
	Rows                                      []tuneRow
	Policies                                  []series
}

type tuneRow struct {
	Cells []string
	Best  bool
}

// tuneGlance puts the recommendation beside the default.
func tuneGlance(r *simtune.Result) []glance {
	if r.Recommended == 0 {
		return nil
	}
	var all []glance
	was, is := r.Rows[0].Values(), r.Rows[r.Recommended].Values()
	for _, m := range simtune.Measures() {
		all = append(all, glance{
			What: m.Heading(), Who: strings.TrimSpace(simcompare.Number(is[m], 3) + " " + m.Unit()),
			Value: "with the default " + simcompare.Number(was[m], 3),
		})
	}
	return all
}

// tuneCharts draw the front in pairs of measures, each against the latency that most requests meet.
func tuneCharts(r *simtune.Result) []chart {
	pairs := []struct {
		title string
		y     simtune.Measure
	}{
		{"Latency and datagrams", simtune.Datagrams},
		{"Latency and false decisions", simtune.False},
		{"Latency and tokens beyond limits", simtune.Excess},
		{"Latency and requests without a decision", simtune.Undecided},
	}
	var all []chart
	for i, p := range pairs {
		c := scatter(r, p.title, simtune.P99, p.y)
		c.ID = fmt.Sprintf("chart-%d", i+1)
		all = append(all, c)
	}
	return all
}
