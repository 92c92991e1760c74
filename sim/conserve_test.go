package sim

import (
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// reporter is what of testing.TB and of rapid.T is needed.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// conservation holds a run to what must be so in every one: time does not go back, what is begun
// ends exactly once, and every copy of a datagram is exactly in one place.
type conservation struct {
	t       reporter
	s       *Scenario
	at      time.Duration
	began   bool
	up      []bool
	open    map[uint64]bool // requests that have not ended
	working map[uint64]bool
	last    uint64
	// Copies: how many more arrived than were sent is what was made by duplication.
	sent, lost, lostInQueue, arrived, copies, served int
	answers, lostAnswers, answerCopies, responses    int
}

func newConservation(t testing.TB, s *Scenario) *conservation {
	c := &conservation{
		t: t, s: s, up: make([]bool, len(s.Servers)), open: map[uint64]bool{}, working: map[uint64]bool{},
	}
	t.Cleanup(c.finish)
	return c
}

func (c *conservation) Record(r *Record) {
	c.t.Helper()
	if r.At < c.at || r.Kind == RecordRun == c.began {
		c.t.Fatalf("at %v after %v: %+v", r.At, c.at, r)
	}
	c.at, c.began = r.At, true
	switch r.Kind {
	case RecordSubmit:
		c.submit(r)
	case RecordDecide:
		if !c.open[r.Request] {
			c.t.Errorf("%v: a second end of request %d, or one of none", r.At, r.Request)
		}
		delete(c.open, r.Request)
		if limit := c.horizon(); r.Completion.Elapsed > limit || r.Completion.Outcome == core.TimedOut && r.Completion.Elapsed != limit {
			c.t.Errorf("%v: request %d ends %v after %v", r.At, r.Request, r.Completion.Outcome, r.Completion.Elapsed)
		}
	case RecordWork:
		c.working[r.Request] = true
	case RecordWorked:
		if !c.working[r.Request] {
			c.t.Errorf("%v: work for request %d that never began, or ended before", r.At, r.Request)
		}
		delete(c.working, r.Request)
	case RecordServer:
		if r.Up == c.up[r.Server] || r.Up == (r.Engine != nil) {
			c.t.Errorf("%v: server %d starts %v, and was %v", r.At, r.Server, r.Up, c.up[r.Server])
		}
		c.up[r.Server] = r.Up
	default:
		c.datagram(r)
	}
}

func (c *conservation) horizon() time.Duration {
	timeline, err := c.s.policy().Compile()
	if err != nil {
		c.t.Fatal(err)
	}
	return timeline.Horizon()
}

func (c *conservation) submit(r *Record) {
	if c.last++; r.Request != c.last || r.At >= c.s.Length {
		c.t.Errorf("%v: request %d follows %d", r.At, r.Request, c.last-1)
	}
	if r.Err == nil {
		c.open[r.Request] = true
	}
}

func (c *conservation) datagram(r *Record) {
	switch {
	case r.Kind == RecordSend:
		c.sent++
	case r.Kind == RecordLost && r.Answer:
		c.lostAnswers++
		c.answerCopies += r.Copy
	case r.Kind == RecordLost && r.Cause == LostKilled:
		c.lostInQueue++
	case r.Kind == RecordLost:
		c.lost++
		c.copies += r.Copy
	case r.Kind == RecordArrive:
		if !c.up[r.Server] {
			c.t.Errorf("%v: a datagram arrives at server %d, which is not there", r.At, r.Server)
		}
		c.arrived++
		c.copies += r.Copy
	case r.Kind == RecordServe:
		if !c.up[r.Server] {
			c.t.Errorf("%v: server %d, which is not there, serves a datagram", r.At, r.Server)
		}
		c.served++
		if answered(r.Verdict) {
			c.answers++
		}
	case r.Kind == RecordResponse:
		c.responses++
		c.answerCopies += r.Copy
	}
}

// finish compares what went in with what came out.
func (c *conservation) finish() {
	if c.sent+c.copies != c.lost+c.arrived {
		c.t.Errorf("%d datagrams and %d copies were sent, %d lost and %d arrived", c.sent, c.copies, c.lost, c.arrived)
	}
	if c.arrived != c.served+c.lostInQueue {
		c.t.Errorf("%d datagrams arrived, %d were served and %d died with their server", c.arrived, c.served, c.lostInQueue)
	}
	if c.answers+c.answerCopies != c.lostAnswers+c.responses {
		c.t.Errorf("%d answers and %d copies were sent, %d lost and %d arrived", c.answers, c.answerCopies, c.lostAnswers, c.responses)
	}
	if len(c.open)+len(c.working) > 0 {
		c.t.Errorf("%d requests have not ended, %d pieces of work neither", len(c.open), len(c.working))
	}
	for i, up := range c.up {
		if up {
			c.t.Errorf("server %d has not ended with the run", i)
		}
	}
}
