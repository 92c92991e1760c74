package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
)

// trace is a request to A, the oldest, and B, whose answers take so long to come, or do not.
func trace(a, b time.Duration, p policy.Policy) *Scenario {
	return small(func(s *Scenario) {
		s.Policy = p
		s.Clients[0].Arrivals = Arrivals{Kind: ArriveTrace, Times: []time.Duration{0}}
		s.Links = nil
		for server, takes := range map[string]time.Duration{"A": a, "B": b} {
			if takes < 0 {
				s.Faults = append(s.Faults, Fault{Kind: FaultPartition, From: server, To: "*"})
				continue
			}
			s.Links = append(s.Links, Link{From: server, To: "*", Delay: Constant(takes)})
		}
	})
}

// TestSeedTraces plays the first traces under the policies that they were meant to compare, and
// looks for the lines that tell what is expected of each.
func TestSeedTraces(t *testing.T) {
	const lost = -1
	for _, c := range []struct {
		preset string
		a, b   time.Duration
		want   []string
	}{
		// Healthy: A at once when its response arrives.
		{"default", ms(4), ms(2), []string{"decide 1 granted by A in round 0 after 4ms"}},
		{"strict-oldest", ms(4), ms(2), []string{"decide 1 granted by A in round 0 after 4ms"}},
		{"oldest-preferred", ms(4), ms(2), []string{"decide 1 granted by A in round 0 after 4ms"}},
		{"bounded-collection", ms(4), ms(2), []string{"decide 1 granted by A in round 0 after 4ms"}},
		{"fastest-valid", ms(4), ms(2), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 0 after 2ms", "response A 1: late"}},
		// A is slow: by the preference deadline it is A, then B at that deadline.
		{"default", ms(19), ms(2), []string{"decide 1 granted by A in round 0 after 19ms"}},
		{"default", ms(25), ms(2), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 0 after 20ms", "response A 1: late"}},
		{"strict-oldest", ms(25), ms(2), []string{"decide 1 granted by B in round 0 after 20ms", "response A 1: late"}},
		{"oldest-preferred", ms(9), ms(2), []string{"decide 1 granted by A in round 0 after 9ms"}},
		{"oldest-preferred", ms(11), ms(2), []string{"decide 1 granted by B in round 0 after 10ms", "response A 1: late"}},
		{"bounded-collection", ms(6), ms(2), []string{"decide 1 granted by B in round 0 after 5ms", "response A 1: late"}},
		{"fastest-valid", ms(25), ms(2), []string{"decide 1 granted by B in round 0 after 2ms"}},
		// At the deadline itself it is too late.
		{"default", ms(20), ms(2), []string{"decide 1 granted by B in round 0 after 20ms"}},
		// A does not answer: B at the deadline, and A is delivered to.
		{"default", lost, ms(3), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 0 after 20ms"}},
		{"strict-oldest", lost, ms(3), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 0 after 20ms"}},
		{"oldest-preferred", lost, ms(3), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 0 after 10ms"}},
		{"bounded-collection", lost, ms(3), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 0 after 5ms"}},
		{"fastest-valid", lost, ms(3), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 0 after 3ms"}},
		// In the second round the default prefers nobody.
		{"default", lost, ms(23), []string{"replay 1 round 1 to A", "replay 1 round 1 to B", "decide 1 granted by B in round 1 after 23ms"}},
		{"strict-oldest", lost, ms(23), []string{"replay 1 round 1 to A", "complete-deliver 1 to A", "decide 1 granted by B in round 1 after 40ms"}},
		// An answer that comes as round 0 ends is one of round 1, which then sends nothing.
		{"default", lost, ms(20), []string{"complete-deliver 1 to A", "decide 1 granted by B in round 1 after 20ms"}},
		// Nobody answers.
		{"default", lost, lost, []string{"replay 1 round 1 to A", "replay 1 round 1 to B", "abandon 1 after 60ms: 2 servers asked"}},
	} {
		p, ok := policy.Preset(c.preset)
		if !ok {
			t.Fatal(c.preset)
		}
		log := logOf(t, trace(c.a, c.b, p), 1)
		at := 0
		for _, line := range c.want {
			i := strings.Index(log[at:], "  "+line+"\n")
			if i < 0 {
				t.Errorf("%s with A after %v and B after %v: no %q in\n%s", c.preset, c.a, c.b, line, log)
				break
			}
			at += i
		}
		if strings.Contains(log, "replay 1") && !strings.Contains(strings.Join(c.want, " "), "replay 1") {
			t.Errorf("%s with A after %v and B after %v: a replay in\n%s", c.preset, c.a, c.b, log)
		}
		if n := strings.Count(log, "decide") + strings.Count(log, "abandon"); n != 1 {
			t.Errorf("%d ends in\n%s", n, log)
		}
	}
}
