package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"strings"
)

// chartCommand draws what a comparison found.
const chartCommand = "chart"

// chart reads the JSON of a comparison and writes a picture of it (SVG).
func chart(_ context.Context, args []string) error {
	const usage = "chart takes no arguments: it reads the JSON of a comparison and writes SVG, as in: go run . chart < found.json > chart.svg"
	f := flag.NewFlagSet(chartCommand, flag.ContinueOnError)
	f.Usage = func() {}
	switch err := readFlags(f, args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println(usage)
		return err
	case err != nil:
		return err
	case f.NArg() > 0:
		return errors.New(usage)
	}
	var report compareReport
	if err := json.NewDecoder(os.Stdin).Decode(&report); err != nil {
		return fmt.Errorf("reading the JSON of a comparison: %w", err)
	}
	return report.draw(os.Stdout)
}

// The measures of a picture, in pixels.
const (
	chartWidth = 760
	chartLeft  = 210 // where names end
	chartRight = 70  // for values
	chartLine  = 22
	chartBar   = 14
	chartGap   = 46 // between panels, for titles
)

// bars is one panel: a bar for each name.
type bars struct {
	title string
	log   bool // a bar's length is how many times it is more than least
	least float64
	most  float64
	rows  []barRow
}

type barRow struct {
	name       string
	value      float64
	gate, goal float64 // 0: none
	ours       bool
}

// draw writes the picture.
func (r *compareReport) draw(w io.Writer) error {
	var panels []bars
	if len(r.Rows) > 0 {
		panels = append(panels, r.ratioBars())
	}
	panels = append(panels, r.systemBars()...)
	if len(panels) == 0 {
		return errors.New("there is nothing in it to draw")
	}
	height := 30
	for i := range panels {
		height += chartGap + chartLine*len(panels[i].rows)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", chartWidth, height)
	top := 0
	for i := range panels {
		panels[i].draw(&b, top)
		top += chartGap + chartLine*len(panels[i].rows)
	}
	fmt.Fprintf(&b, `<text x="10" y="%d" fill="#666" font-size="11">%s</text>`+"\n</svg>\n", height-8, html.EscapeString(r.Machine))
	_, err := io.WriteString(w, b.String())
	return err
}

// ratioBars has the figures, with their gates and goals.
func (r *compareReport) ratioBars() bars {
	p := bars{title: "ours, by theirs (log scale; red: gate, green: goal)", log: true, least: math.Inf(1)}
	for _, row := range r.Rows {
		p.rows = append(p.rows, barRow{row.Name, row.Ratio, row.Gate, row.Goal, true})
		for _, v := range []float64{row.Ratio, row.Gate, row.Goal} {
			if v > 0 {
				p.least, p.most = min(p.least, v/2), max(p.most, v)
			}
		}
	}
	return p
}

// systemBars has the figures of all systems, two panels for each kind of clients.
func (r *compareReport) systemBars() (all []bars) {
	for _, clients := range []string{"one each", "4"} {
		throughput := bars{title: "decisions a second with 64 in flight, sockets: " + clients}
		cost := bars{title: "processor time of the server's side for each, us, sockets: " + clients}
		for _, s := range r.Systems {
			if s.Sockets != clients {
				continue
			}
			ours := s.System == "r-server"
			throughput.rows = append(throughput.rows, barRow{name: s.System, value: s.At64, ours: ours})
			cost.rows = append(cost.rows, barRow{name: s.System, value: s.CPU64, ours: ours})
			throughput.most, cost.most = max(throughput.most, s.At64), max(cost.most, s.CPU64)
		}
		if len(throughput.rows) > 0 {
			all = append(all, throughput, cost)
		}
	}
	return all
}

// draw writes a panel.
func (p *bars) draw(b *strings.Builder, top int) {
	fmt.Fprintf(b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", top+30, html.EscapeString(p.title))
	for i, row := range p.rows {
		y := top + chartGap - 6 + i*chartLine
		color := "#9aa5b1"
		if row.ours {
			color = "#3465a4"
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLeft-8, y+chartBar-3, html.EscapeString(row.name))
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", chartLeft, y, p.length(row.value), chartBar, color)
		for _, mark := range []struct {
			at    float64
			color string
		}{{row.gate, "#cc0000"}, {row.goal, "#4e9a06"}} {
			if mark.at > 0 {
				fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="2" height="%d" fill="%s"/>`+"\n", chartLeft+p.length(mark.at)-1, y-2, chartBar+4, mark.color)
			}
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", chartLeft+max(p.length(row.value), p.length(row.gate), p.length(row.goal))+6, y+chartBar-3, short(row.value))
	}
}

// length is how long the bar of a value is.
func (p *bars) length(v float64) float64 {
	const all = chartWidth - chartLeft - chartRight
	switch {
	case !(v > 0) || !(p.most > 0):
		return 0
	case p.log:
		return all * max(0, math.Log(v/p.least)/math.Log(p.most/p.least))
	}
	return all * min(1, v/p.most)
}

// short is a value to be read beside a bar.
func short(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.0fk", v/1000)
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
