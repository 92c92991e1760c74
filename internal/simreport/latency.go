package simreport

import (
	"fmt"
	"math"
	"strings"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/sim"
)

// mostNines is where the axis of shares ends: 99.99 %.
const mostNines = 4

// nines maps a share to how many nines it has: 0.9 to 1, 0.999 to 3.
func nines(share float64) float64 {
	if share >= 1 {
		return mostNines
	}
	return min(-math.Log10(1-share), mostNines)
}

// curve draws a distribution in steps, to where the axis of shares ends.
func curve(points []sim.Point, x, y axis) string {
	var d strings.Builder
	value, high := points[0].Value, bottom
	pathTo(&d, true, x.position(float64(value)/1e6), high)
	for _, p := range points {
		if p.Value != value {
			pathTo(&d, false, x.position(float64(value)/1e6), high)
			pathTo(&d, false, x.position(float64(p.Value)/1e6), high)
			value = p.Value
		}
		high = y.position(nines(float64(p.Share) / 1e6))
		if p.Share >= 999_900 {
			break
		}
	}
	pathTo(&d, false, x.position(float64(value)/1e6), high)
	return d.String()
}

// latencyChart shows which share of the requests was decided within which time.
func latencyChart(c *simcompare.Comparison, policies []series) chart {
	f := frame("How long decisions take", "Further left is faster. At the top is the slowest request of ten thousand.", "time from request to decision (ms)", "requests decided within that time")
	least, most, fewest := math.Inf(1), 0.0, int64(math.MaxInt64)
	for i := range c.Columns {
		h := &c.Columns[i].Seeds.Latency.Decided
		if h.Count() == 0 {
			continue
		}
		least, most = min(least, float64(h.Min())/1e6), max(most, float64(h.Quantile(999_900))/1e6)
		fewest = min(fewest, h.Count())
	}
	if most <= 0 {
		return chart{Title: f.Title, Empty: "No request took any time to be decided, or none was."}
	}
	if fewest < 10_000 {
		f.Note += fmt.Sprintf(" Of %d requests, the top is the slowest few: take more seeds.", fewest)
	}
	x := axis{low: 0, high: most * 1.05, from: left, to: right}
	if least = max(least, most/1e5); most/least >= 5 {
		x.low, x.high, x.log = least*0.8, most*1.2, true
	}
	y := axis{low: 0, high: mostNines, from: bottom, to: top}
	f.XTicks = x.ticks()
	for _, share := range []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999} {
		f.YTicks = append(f.YTicks, tick{at(y.position(nines(share))), tickText(100*share) + " %"})
	}
	for i := range c.Columns {
		points := c.Columns[i].Seeds.Latency.Decided.CDF()
		if len(points) == 0 {
			continue
		}
		f.Lines = append(f.Lines, line{curve(points, x, y), policies[i].Class, policies[i].Name})
	}
	f.Legend = policies
	return f
}
