package simtune

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
)

// everywhere calls f for every point of the grid.
func everywhere(f func(point)) {
	var pt point
	for {
		f(pt)
		axis := 0
		for ; axis < axes; axis++ {
			if pt[axis]++; pt[axis] < sizes[axis] {
				break
			}
			pt[axis] = 0
		}
		if axis == axes {
			return
		}
	}
}

// TestGrid holds that every point is a policy that its own text gives back, that two points which
// differ are two policies, and that no number of a policy is out of the search's reach.
func TestGrid(t *testing.T) {
	if got := defaultPoint.policy(); got != policy.Default() {
		t.Fatalf("defaultPoint is %v, and the default is %v; docs/tuning.md is to be written anew, too", got, policy.Default())
	}
	points := make(map[policy.Policy]point)
	moved := make(map[string]map[any]bool)
	fields := reflect.VisibleFields(reflect.TypeFor[policy.Policy]())
	everywhere(func(pt point) {
		if pt != pt.normal() || pt[axisRound]%4 != 1 { // lengths of rounds differ in nothing else
			return
		}
		p := pt.policy()
		if _, err := p.Compile(); err != nil {
			if delay := deliveries[pt[axisDelivery]]; delay < 4 {
				t.Fatalf("%v: %v", pt, err)
			}
			return // delivery would be behind the horizon
		}
		if other, there := points[p]; there {
			t.Fatalf("%v and %v are both %v", pt, other, p)
		}
		points[p] = pt
		for _, f := range fields {
			if moved[f.Name] == nil {
				moved[f.Name] = make(map[any]bool)
			}
			moved[f.Name][reflect.ValueOf(p).FieldByIndex(f.Index).Interface()] = true
		}
	})
	for p := range points { // each is looked at by itself
		if again, err := policy.Parse(Text(p)); err != nil || again != p {
			t.Fatalf("%s reads %v, %v", Text(p), again, err)
		}
	}
	for _, f := range fields {
		if len(moved[f.Name]) < 2 {
			t.Errorf("the search never moves %s", f.Name)
		}
	}
}

// TestPointsMean holds what a point says of its policy's instants.
func TestPointsMean(t *testing.T) {
	pt := point{axisRound: 2, axisPrefer: 3, axisLater: 1, axisReplays: 2, axisGrowth: growDouble, axisFinal: 3, axisFinalPre: 1, axisDelivery: 3}
	line, err := pt.policy().Compile()
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	got := []time.Duration{
		line.Start(1), line.Start(2), line.Start(3), line.Horizon(),
		line.PreferenceEnd(0), line.PreferenceEnd(1), line.PreferenceEnd(2), line.PreferenceEnd(3), line.DeliveryDelay(),
	}
	want := []time.Duration{2 * ms, 6 * ms, 14 * ms, 18 * ms, 1500 * time.Microsecond, 5 * ms, 12 * ms, 17 * ms, ms}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v: instants %v, want %v", pt.policy(), got, want)
	}
}

func TestNeighbors(t *testing.T) {
	if n := len(defaultPoint.neighbors()); n != 2+1+1+2+1+2+1+2 {
		t.Errorf("the default has %d neighbors", n)
	}
	for _, next := range defaultPoint.neighbors() {
		steps := 0
		for axis := range next {
			if d := next[axis] - defaultPoint[axis]; d != 0 {
				steps += d * d
			}
		}
		if steps != 1 {
			t.Errorf("%v is %d steps from the default", next, steps)
		}
	}
}
