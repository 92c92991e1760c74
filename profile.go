package weir

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
)

// A Profile says how a decision came about. It is one value, so that it can be
// compared, kept and handed to a log or a metric as a whole; those of many
// decisions are added up in [Client.Stats].
type Profile struct {
	Server  ident.ServerID // who decided; 0 for a request for nothing, which needs nobody
	Oldest  bool           // it was the oldest of the servers that were asked; any other is the fallback
	Round   int            // in which the deciding answer came: 0 after the first send, k after k gaps
	Final   bool           // it came in the final interval, and Round is one more than the policy's replays
	Elapsed time.Duration  // from the first send to the decision
	// KeepPort is the steering flag of the deciding answer: false advises another
	// source port, which the client sees to itself.
	KeepPort bool
	Servers  int // asked
	Answered int // of these, whose answer had counted when the decision was made
	Replays  int // rounds that were sent after the first; at most Round
}

// String says it in one line.
func (p Profile) String() string {
	if p.Servers == 0 {
		return "nobody was asked"
	}
	var s strings.Builder
	fmt.Fprintf(&s, "server %v, ", p.Server)
	switch {
	case p.Servers == 1:
		s.WriteString("the only one")
	case p.Oldest:
		s.WriteString("the oldest")
	default:
		s.WriteString("a fallback")
	}
	fmt.Fprintf(&s, ", %s after %v; %d of %s had answered; %s",
		p.when(), p.Elapsed.Round(time.Microsecond), p.Answered, number(p.Servers, "server"), number(p.Replays, "replay"))
	if !p.KeepPort {
		s.WriteString("; it advised another port")
	}
	return s.String()
}

// when names the interval of the deciding answer.
func (p Profile) when() string {
	if p.Final {
		return "in the final interval"
	}
	return fmt.Sprintf("in round %d", p.Round)
}

// profile is what a completion says of how it came about.
func profile(c *core.Completion) Profile {
	return Profile{
		Server:   c.Server,
		Oldest:   c.Oldest,
		Round:    c.Round,
		Final:    c.Final,
		Elapsed:  c.Elapsed,
		KeepPort: c.KeepPort,
		Servers:  c.Seen.Servers,
		Answered: int(c.Seen.Datagrams[core.DatagramCounted]),
		Replays:  c.Replays,
	}
}
