package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Limits of what is worth a word.
const (
	skew      = 5 * time.Second // that servers allow unless told otherwise
	closeCall = time.Second     // a clock further off than this is told
	crowded   = 2               // a round trip of more than the horizon through this is a close call
)

// diagnose says what the findings come to: first what is certain, then what is
// left when nothing is.
func (x *examination) diagnose() {
	x.horizonFits()
	x.files()
	x.dns()
	x.clock()
	x.horizonCapped()
	x.strangers()
	x.unreachable()
	x.otherAnswers()
	x.silent()
	x.layout()
	x.loss()
	x.longLost()
	x.path()
	x.clockClose()
	x.mode()
	slices.SortStableFunc(x.report.Diagnoses, func(a, b Diagnosis) int {
		return rank(a.Severity) - rank(b.Severity)
	})
	x.report.Verdict = x.verdict()
	if x.report.Diagnoses == nil {
		x.report.Diagnoses = []Diagnosis{}
	}
}

func rank(s Severity) int {
	if s == Note {
		return 1
	}
	return 0
}

func (x *examination) verdict() Verdict {
	p := x.report.Path
	switch {
	case p == nil || p.Decided == 0:
		return NoDecision
	case p.Decided < p.Asked:
		return Degraded
	}
	for _, d := range x.report.Diagnoses {
		if d.Severity == Fault {
			return Degraded
		}
	}
	return Well
}

// diagnosis adds one. Its texts are single lines.
func (x *examination) diagnosis(code string, s Severity, says, do, unsure string) {
	says = strings.ToUpper(says[:1]) + says[1:]
	x.report.Diagnoses = append(x.report.Diagnoses, Diagnosis{Code: code, Severity: s, Says: says, Do: do, Unsure: unsure})
}

// spot is an address with its server.
type spot struct {
	*Server
	*Endpoint
}

func (s spot) String() string { return fmt.Sprintf("server %v at %v", s.ID, s.Addr) }

// spots lists the addresses of which something holds, in the report's order.
func (x *examination) spots(holds func(*Endpoint) bool) []spot {
	var all []spot
	for i := range x.report.Servers {
		s := &x.report.Servers[i]
		for j := range s.Endpoints {
			if holds(&s.Endpoints[j]) {
				all = append(all, spot{s, &s.Endpoints[j]})
			}
		}
	}
	return all
}

// in lists the addresses in some state.
func (x *examination) in(states ...State) []spot {
	return x.spots(func(e *Endpoint) bool { return slices.Contains(states, e.State) })
}

// name names addresses: those of a server together, but no more than four.
func name(spots []spot) string {
	var s []string
	for i, sp := range spots {
		switch {
		case i == 4 && len(spots) > 5:
			return strings.Join(s, ", ") + fmt.Sprintf(" and %d more addresses", len(spots)-i)
		case i > 0 && spots[i-1].ID == sp.ID:
			s = append(s, sp.Addr.String())
		default:
			s = append(s, sp.String())
		}
	}
	return and(s)
}

// and lists things in a sentence.
func and(s []string) string {
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}

// verb is "answers" for one address, "answer" for several.
func verb(spots []spot, stem string) string {
	if len(spots) == 1 {
		return stem + "s"
	}
	return stem
}

// exposed reports whether an address is of another machine.
func exposed(a netip.AddrPort) bool { return !a.Addr().IsLoopback() }
