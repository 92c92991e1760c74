package simreport

import (
	"math"
	"strconv"
	"strings"
)

// A chart's room in units of its SVG, which is scaled to where it stands.
const (
	width   = 480.0
	left    = 60.0 // of the plot
	right   = 466.0
	top     = 30.0
	bottom  = 230.0
	lineTop = 275.0 // the height of a chart of lines
)

// chart is a figure as the template draws it.
type chart struct {
	ID, Title, Note string
	Height          float64
	XLabel, YLabel  string
	Left, Right     string
	Top, Bottom     string
	XTicks, YTicks  []tick
	Bands           []band
	Lines           []line
	Bars            []bar
	Whiskers        []whisker
	Dots            []dot
	Labels          []label
	Legend          []series
	Boxes           bool // the legend's samples are areas, not lines
	Faults          []faultView
	Empty           string // instead of all that
}

// Positions are text already, of one digit behind the point, so that they are the same
// everywhere.
type (
	tick    struct{ At, Text string }
	band    struct{ X, Width, Y, Height, Middle, LabelY, Text, Title string }
	line    struct{ D, Class, Title string }
	bar     struct{ X, Y, Width, Height, Class, Title string }
	whisker struct{ D string }
	dot     struct{ X, Y, R, Class, Title string }
	label   struct{ X, Y, Text, Anchor, Class string }
)

// at writes a position.
func at(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// frame begins a chart of lines.
func frame(title, note, x, y string) chart {
	return chart{
		Title: title, Note: note, XLabel: x, YLabel: y, Height: lineTop,
		Left: at(left), Right: at(right), Top: at(top), Bottom: at(bottom),
	}
}

// axis maps values to positions.
type axis struct {
	low, high float64 // values at the ends
	from, to  float64 // positions of those
	log       bool
}

func (a axis) position(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log10(max(v, low)), math.Log10(low), math.Log10(high)
	}
	return a.from + (min(max(v, low), high)-low)/(high-low)*(a.to-a.from)
}

// values returns where ticks go: at round numbers, about five of them.
func (a axis) values() []float64 {
	if a.log {
		return logValues(a.low, a.high)
	}
	step := niceStep((a.high - a.low) / 5)
	var all []float64
	for i := math.Ceil(a.low/step - 1e-9); i*step <= a.high+step*1e-9; i++ {
		all = append(all, i*step+0) // and not -0
	}
	return all
}

// logValues are 1, 2 and 5 of each decade, or 1 alone if there are many.
func logValues(low, high float64) []float64 {
	digits := []float64{1, 2, 5}
	if high/low > 2000 {
		digits = digits[:1]
	}
	var all []float64
	for decade := math.Floor(math.Log10(low)); decade <= math.Ceil(math.Log10(high)); decade++ {
		for _, d := range digits {
			if v := d * math.Pow(10, decade); v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				all = append(all, v)
			}
		}
	}
	return all
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// ticks returns the ticks of an axis.
func (a axis) ticks() []tick {
	var all []tick
	for _, v := range a.values() {
		all = append(all, tick{at(a.position(v)), tickText(v)})
	}
	return all
}

func tickText(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// pathTo adds a point to a path; the first of a piece is moved to.
func pathTo(d *strings.Builder, first bool, x, y float64) {
	command := "L"
	if first {
		command = "M"
	}
	d.WriteString(command + at(x) + " " + at(y))
}

// timeAxis is the run from left to right, in seconds.
func timeAxis(seconds float64) axis { return axis{low: 0, high: seconds, from: left, to: right} }

// bands shade when faults are.
func bands(x axis, faults []faultView) []band {
	var all []band
	taken := make(map[string]int) // labels of faults that begin together go below each other
	for _, f := range faults {
		from, to := x.position(f.begin.Seconds()), x.position(f.end.Seconds())
		wide := max(to-from, 2)
		from = min(from, right-wide)
		middle := at(min(max(from+wide/2, left+8), right-8))
		row := taken[middle]
		taken[middle]++
		all = append(all, band{
			X: at(from), Width: at(wide), Y: at(top), Height: at(bottom - top),
			Middle: middle, LabelY: at(top + 14 + 13*float64(row%8)), Text: strconv.Itoa(f.Number), Title: f.What + " " + f.When,
		})
	}
	return all
}
