package simreport

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simcompare"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// TestFaultWindows holds what is said of each kind of fault, and from when to when it is shaded.
func TestFaultWindows(t *testing.T) {
	const s = time.Second
	faults := []sim.Fault{
		{Kind: sim.FaultPartition, At: s, For: 2 * s, From: "A", To: "*", Both: true},
		{Kind: sim.FaultLoss, At: s, From: "web", To: "B", Chance: 205_000},
		{Kind: sim.FaultDelay, At: s, From: "*", To: "B", Dist: sim.Constant(30 * time.Millisecond)},
		{Kind: sim.FaultPause, At: 9 * s, For: 5 * s, Server: "A"},
		{Kind: sim.FaultSlow, Server: "A", Dist: sim.Exponential(time.Millisecond)},
		{Kind: sim.FaultKill, At: 4 * s, Server: "A"},
		{Kind: sim.FaultForget, At: 4 * s, Server: "A"},
		{Kind: sim.FaultClock, At: 4 * s, For: s, From: "web", Step: -s},
		{Kind: sim.FaultMembers, Members: []string{"A", "B"}},
		{Kind: sim.FaultEmpty, For: s},
		{Kind: sim.FaultResolver, For: s},
		{Kind: sim.FaultStranger, For: s},
		{Kind: sim.FaultWork, For: s, Service: "db", Dist: sim.Constant(s)},
	}
	want := []string{
		"1 partition A ↔ all, from 1s for 2s: 1s 3s",
		"2 loss of 20.5 % web → B, from 1s on: 1s 10s",
		"3 delay of 30ms all → B, from 1s on: 1s 10s",
		"4 pause A, from 9s for 5s: 9s 10s",
		"5 A slower by exponential 1ms, from 0s on: 0s 10s",
		"6 kill A, from 4s on: 4s 10s",
		"7 forget A, at 4s: 4s 4s",
		"8 clock of web steps by -1s, from 4s for 1s: 4s 5s",
		"9 DNS names A, B, from 0s on: 0s 10s",
		"10 DNS names nobody, from 0s for 1s: 0s 1s",
		"11 DNS does not answer, from 0s for 1s: 0s 1s",
		"12 DNS names a server that does not exist, from 0s for 1s: 0s 1s",
		"13 work of db longer by 1s, from 0s for 1s: 0s 1s",
	}
	views := faultViews(&sim.Scenario{Length: 10 * s, Faults: faults})
	var got []string
	for _, v := range views {
		got = append(got, fmt.Sprintf("%d %s, %s: %v %v", v.Number, v.What, v.When, v.begin, v.end))
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults are\n%s", strings.Join(got, "\n"))
	}
	// Seconds 1 to 3 of 10; an instant has a width, and two that begin together have labels apart.
	b := bands(timeAxis(10), views)
	if b[0].X != at(left+(right-left)/10) || b[0].Width != at((right-left)/5) || b[6].Width != "2.0" {
		t.Errorf("bands %+v and %+v", b[0], b[6])
	}
	if b[1].Middle != b[2].Middle || b[1].LabelY == b[2].LabelY {
		t.Errorf("the labels of two faults at once are at %v and %v", b[1], b[2])
	}
}

// TestLatencyCurve holds that a curve begins at the fastest request, below, and ends at the
// 99.99th percentile, above.
func TestLatencyCurve(t *testing.T) {
	var m sim.Measures
	for i := range int64(20_000) {
		v := int64(time.Millisecond)
		if i >= 10_000 {
			v = int64(3 * time.Millisecond)
		}
		if i >= 19_990 { // one in 2000
			v = int64(4 * time.Millisecond)
		}
		if i == 19_999 { // beyond 99.99 %
			v = int64(time.Second)
		}
		m.Latency.Decided.Add(v)
	}
	c := &simcompare.Comparison{
		Scenario: small(nil), Seeds: 1, Columns: []simcompare.Column{simcompare.NewColumn("p", policy.Default(), []*sim.Measures{&m})},
	}
	f := latencyChart(c, []series{{Name: "p"}})
	x := axis{low: 0, high: 4.2, from: left, to: right}
	y := func(share float64) float64 { return bottom - (bottom-top)*nines(share)/4 }
	want := [][2]float64{
		{x.position(1), bottom},
		{x.position(1), y(0.5)},
		{x.position(3), y(0.5)},
		{x.position(3), y(0.9995)},
		{x.position(4), y(0.9995)},
		{x.position(4), top},
	}
	var got [][2]float64
	for point := range strings.FieldsFuncSeq(f.Lines[0].D, func(r rune) bool { return r == 'M' || r == 'L' }) {
		var p [2]float64
		if _, err := fmt.Sscan(point, &p[0], &p[1]); err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	// Histograms tell three digits apart.
	if !slices.EqualFunc(got, want, func(a, b [2]float64) bool { return math.Abs(a[0]-b[0]) < 1 && math.Abs(a[1]-b[1]) < 0.1 }) {
		t.Errorf("the curve is %v, want %v", got, want)
	}
	if f.YTicks[5].Text != "99.99 %" || f.YTicks[5].At != at(top) {
		t.Errorf("the axis ends with %+v", f.YTicks[5])
	}
	if strings.Contains(f.Note, "take more seeds") {
		t.Errorf("of 20,000 requests it says %q", f.Note)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis axis
		want string
	}{
		{axis{low: 0, high: 20, from: 0, to: 100}, "[{0.0 0} {25.0 5} {50.0 10} {75.0 15} {100.0 20}]"},
		{axis{low: 99, high: 100, from: 100, to: 0}, "[{100.0 99} {80.0 99.2} {60.0 99.4} {40.0 99.6} {20.0 99.8} {0.0 100}]"},
		{axis{low: 1, high: 100, from: 0, to: 100, log: true}, "[{0.0 1} {15.1 2} {34.9 5} {50.0 10} {65.1 20} {84.9 50} {100.0 100}]"},
		{axis{low: 0.01, high: 100, from: 0, to: 100, log: true}, "[{0.0 0.01} {25.0 0.1} {50.0 1} {75.0 10} {100.0 100}]"},
	} {
		if got := fmt.Sprint(c.axis.ticks()); got != c.want {
			t.Errorf("%+v has the ticks %s, want %s", c.axis, got, c.want)
		}
	}
	for least, want := range map[float64]float64{100: 99, 99.05: 95, 98: 95, 70: 50, 51: 0, 0: 0} {
		if got := lowEnd(least); got != want {
			t.Errorf("an axis down to %v begins at %v, want %v", least, got, want)
		}
	}
}

// TestGaps holds that a line over time has a hole where there was no request, and the height of
// each bin's share.
func TestGaps(t *testing.T) {
	m := sim.Measures{Timeline: sim.Timeline{Bin: 500 * time.Millisecond, Bins: []sim.Bin{
		{Submitted: 4, Decided: 4}, {}, {Submitted: 4, Decided: 2}, {Submitted: 1, Decided: 1},
	}}}
	c := &simcompare.Comparison{
		Scenario: small(nil), Seeds: 1, Columns: []simcompare.Column{simcompare.NewColumn("p", policy.Default(), []*sim.Measures{&m})},
	}
	f := availabilityChart(c, []series{{Name: "p"}}, nil)
	// The axis goes down to 0, and the run takes 2 s.
	if want := "M60.0 30.0L161.5 30.0M263.0 130.0L364.5 130.0L364.5 30.0L466.0 30.0"; f.Lines[0].D != want {
		t.Errorf("the line is %s, want %s", f.Lines[0].D, want)
	}
}

// TestFaultAfterTheLength has a fault begin when nobody asks any more: its shade is not turned inside out.
func TestFaultAfterTheLength(t *testing.T) {
	faults := []sim.Fault{{Kind: sim.FaultEmpty, At: 12 * time.Second}, {Kind: sim.FaultEmpty, At: 11 * time.Second, For: time.Second}}
	for _, v := range faultViews(&sim.Scenario{Length: 10 * time.Second, Faults: faults}) {
		if v.begin != 10*time.Second || v.end != v.begin {
			t.Errorf("%s is drawn from %v to %v", v.When, v.begin, v.end)
		}
	}
}
