package simreport

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/sim"
)

// faultView is a fault: a number in the charts, and words below them.
type faultView struct {
	Number     int
	What, When string
	begin, end time.Duration
}

// faultViews are the faults of a scenario, in its order.
func faultViews(s *sim.Scenario) []faultView {
	var all []faultView
	for i := range s.Faults {
		f := &s.Faults[i]
		v := faultView{Number: i + 1, What: what(f), begin: f.At, end: f.At + f.For}
		switch {
		case f.For > 0:
			v.When = fmt.Sprintf("from %v for %v", f.At, f.For)
		case f.Kind == sim.FaultForget:
			v.When = fmt.Sprintf("at %v", f.At)
		default:
			v.When = fmt.Sprintf("from %v on", f.At)
			v.end = s.Length
		}
		v.begin, v.end = min(v.begin, s.Length), min(v.end, s.Length) // what comes later is at the charts' edge
		all = append(all, v)
	}
	return all
}

// what says in words what a fault does.
func what(f *sim.Fault) string {
	switch f.Kind {
	case sim.FaultPartition:
		return "partition " + path(f)
	case sim.FaultLoss:
		return fmt.Sprintf("loss of %v %% %s", float64(f.Chance)/1e4, path(f))
	case sim.FaultDelay:
		return fmt.Sprintf("delay of %v %s", f.Dist, path(f))
	case sim.FaultSlow:
		return fmt.Sprintf("%s slower by %v", f.Server, f.Dist)
	case sim.FaultWork:
		return fmt.Sprintf("work of %s longer by %v", f.Service, f.Dist)
	case sim.FaultClock:
		return fmt.Sprintf("clock of %s%s steps by %v", f.Server, f.From, f.Step)
	case sim.FaultMembers:
		return "DNS names " + strings.Join(f.Members, ", ")
	case sim.FaultEmpty:
		return "DNS names nobody"
	case sim.FaultResolver:
		return "DNS does not answer"
	case sim.FaultStranger:
		return "DNS names a server that does not exist"
	}
	return strings.TrimSpace(f.Kind.String() + " " + f.Server)
}

// path is between whom a fault is.
func path(f *sim.Fault) string {
	arrow := " → "
	if f.Both {
		arrow = " ↔ "
	}
	return end(f.From) + arrow + end(f.To)
}

func end(name string) string {
	if name == "*" || name == "" {
		return "all"
	}
	return name
}
