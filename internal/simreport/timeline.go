package simreport

import (
	"math"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/sim"
)

// availabilityChart shows which share of the requests was decided, over time.
func availabilityChart(c *simcompare.Comparison, policies []series, faults []faultView) chart {
	f := frame("Availability over time", "Dips are requests without a decision."+ifAny(faults, " Shaded: while a fault lasts."), "time of the request (s)", "requests decided (%)")
	least := 100.0
	decided := func(b *sim.Bin) (uint64, uint64) { return b.Decided, b.Submitted }
	eachBin(c, decided, func(percent float64) { least = min(least, percent) })
	y := axis{low: lowEnd(least), high: 100, from: bottom, to: top}
	return overTime(f, c, policies, faults, y, decided)
}

// disagreementChart shows about which share of the requests servers disagreed, over time.
func disagreementChart(c *simcompare.Comparison, policies []series, faults []faultView) chart {
	f := frame("Servers that disagree", "Above 0, what is granted depends on which server decides."+ifAny(faults, " It should come back to 0 when a fault is over."), "time of the request (s)", "requests that servers answer differently (%)")
	most, bins := 0.0, 0
	disagreed := func(b *sim.Bin) (uint64, uint64) { return b.Disagreed, b.Compared }
	c = coarse(c, 40)
	eachBin(c, disagreed, func(percent float64) { most = max(most, percent); bins++ })
	switch {
	case bins == 0:
		return chart{Title: f.Title, Empty: "No request was executed by two servers."}
	case most == 0:
		return chart{Title: f.Title, Empty: "Never: servers answered every request alike."}
	}
	step := niceStep(most / 5)
	y := axis{low: 0, high: min(100, step*math.Ceil(most/step)), from: bottom, to: top}
	return overTime(f, c, policies, faults, y, disagreed)
}

// ifAny is what there is to say where there are faults.
func ifAny(faults []faultView, text string) string {
	if len(faults) == 0 {
		return ""
	}
	return text
}

// coarse returns the comparison with bins put together, so that there are about so many: a share of
// few requests is noise.
func coarse(c *simcompare.Comparison, bins int) *simcompare.Comparison {
	changed := *c
	changed.Columns = append([]simcompare.Column(nil), c.Columns...)
	for i := range changed.Columns {
		seeds := *changed.Columns[i].Seeds
		old := seeds.Timeline
		each := max(1, len(old.Bins)/bins)
		seeds.Timeline = sim.Timeline{Bin: old.Bin * time.Duration(each), Bins: make([]sim.Bin, (len(old.Bins)+each-1)/each)}
		for j := range old.Bins {
			b := &seeds.Timeline.Bins[j/each]
			b.Compared += old.Bins[j].Compared
			b.Disagreed += old.Bins[j].Disagreed
		}
		changed.Columns[i].Seeds = &seeds
	}
	return &changed
}

// lowEnd is where an axis of availability begins, so that its dips are seen.
func lowEnd(least float64) float64 {
	for _, low := range []float64{99, 95, 90, 80, 50} {
		if least >= low+(100-low)/10 {
			return low
		}
	}
	return 0
}

// eachBin calls do with the percentage of every bin that has one.
func eachBin(c *simcompare.Comparison, of func(*sim.Bin) (uint64, uint64), do func(float64)) {
	for i := range c.Columns {
		for j := range c.Columns[i].Seeds.Timeline.Bins {
			if a, b := of(&c.Columns[i].Seeds.Timeline.Bins[j]); b > 0 {
				do(100 * float64(a) / float64(b))
			}
		}
	}
}

// overTime draws a share of bins, a line for each policy. Bins of which there is none are gaps.
func overTime(f chart, c *simcompare.Comparison, policies []series, faults []faultView, y axis, of func(*sim.Bin) (uint64, uint64)) chart {
	x := timeAxis(c.Scenario.Length.Seconds())
	f.XTicks, f.YTicks = x.ticks(), y.ticks()
	f.Bands, f.Faults, f.Legend = bands(x, faults), faults, policies
	for i := range c.Columns {
		t := &c.Columns[i].Seeds.Timeline
		var d strings.Builder
		gap := true
		for j := range t.Bins {
			a, b := of(&t.Bins[j])
			if b == 0 {
				gap = true
				continue
			}
			from := float64(j) * t.Bin.Seconds()
			v := y.position(100 * float64(a) / float64(b))
			pathTo(&d, gap, x.position(from), v)
			pathTo(&d, false, x.position(from+t.Bin.Seconds()), v)
			gap = false
		}
		f.Lines = append(f.Lines, line{d.String(), policies[i].Class, policies[i].Name})
	}
	return f
}
