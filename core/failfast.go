package core

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// FailFastConfig makes a core stop asking while nobody answers, so that an outage
// of all servers does not cost every caller the horizon. It is off by default.
type FailFastConfig struct {
	// Timeouts is after how many requests that timed out in a row [Core.Submit]
	// fails at once with [ErrFailFast]; 0 means never. A decision of any server
	// begins the row anew. What was canceled, could not be sent, or asked for
	// nothing does not matter to it. At most 1<<30.
	Timeouts int
	// Probe is the time between two probes while failing fast, 1 s or the policy's
	// horizon, if that is longer; not below the horizon and at most a year. Up to
	// half as much again is added at random. The first comes at once, unless the
	// last outage ended less than Probe before: requests that were under way
	// together time out together, and a moment without answers is not to cost much
	// more than itself. A probe asks the known servers, in the policy's rounds, how
	// full a bucket of its own is, [ProbeBucket], and takes nothing. The first
	// decision, of a probe or of a request that was under way, ends it. When it
	// begins, the servers are discovered anew; a new membership is probed at once.
	Probe time.Duration
}

// ProbeBucket is the name of the bucket that probes ask about. It grants 1 token
// in any 1 ms, and no probe takes one.
const ProbeBucket = "weir/probe"

// FailFastState says since when and why a core is failing fast.
type FailFastState struct {
	Since    time.Duration // monotonic instant of the timeout that was one too many
	Timeouts int           // requests that timed out in a row, until now
	// Elapsed and Seen are those of the last request or probe that timed out, as
	// in its [Completion].
	Elapsed time.Duration
	Seen    Seen
}

const maxTimeouts = 1 << 30

// fill sets the default and checks the fields.
func (cfg *FailFastConfig) fill(horizon time.Duration) error {
	if cfg.Timeouts < 0 || cfg.Timeouts > maxTimeouts {
		return &FieldError{"FailFast.Timeouts", fmt.Sprintf("%d is not from 0 to %d", cfg.Timeouts, maxTimeouts)}
	}
	if cfg.Probe == 0 {
		cfg.Probe = max(time.Second, horizon)
	}
	if cfg.Probe < horizon || cfg.Probe > maxRefresh {
		return &FieldError{"FailFast.Probe", fmt.Sprintf("%v is not from the policy's horizon of %v to %v", cfg.Probe, horizon, maxRefresh)}
	}
	return nil
}

// failFast is what is known of an outage.
type failFast struct {
	row     int    // requests that timed out in a row
	settled uint64 // requests up to this one began before the last recovery: their timeouts are of the past

	failing bool
	since   time.Duration
	calm    time.Duration // from then on what trips it may have been a moment, and is probed at once
	next    time.Duration // the next probe, while failing
	probe   *flight       // undecided, or nil

	// The last request or probe that timed out.
	elapsed time.Duration
	seen    Seen
}

// FailFast returns why [Core.Submit] fails with [ErrFailFast], and false while it
// does not.
func (c *Core) FailFast() (FailFastState, bool) {
	ff := &c.failFast
	if !ff.failing {
		return FailFastState{}, false
	}
	return FailFastState{Since: ff.since, Timeouts: ff.row, Elapsed: ff.elapsed, Seen: ff.seen}, true
}

// learn takes the end of a request or probe into account.
func (c *Core) learn(t time.Duration, f *flight) {
	ff := &c.failFast
	if ff.probe == f {
		ff.probe = nil
	}
	if c.cfg.FailFast.Timeouts == 0 {
		return
	}
	switch f.outcome {
	case Granted, Rejected:
		ff.row = 0
		if ff.failing {
			ff.failing, ff.settled = false, c.seq
			ff.calm = t + c.cfg.FailFast.Probe
			c.events.push(pendingEvent{kind: EventRecovered})
		}
	case TimedOut:
		ff.elapsed, ff.seen = f.elapsed, f.seen
		if f.probe || f.seq <= ff.settled {
			return
		}
		ff.row++
		if !ff.failing && ff.row >= c.cfg.FailFast.Timeouts {
			ff.failing, ff.since = true, t
			ff.next = t
			if t < ff.calm {
				ff.next = t + c.discovery.jittered(c.cfg.FailFast.Probe)
			}
			c.stats.FailFastTrips++
			c.events.push(pendingEvent{kind: EventFailingFast})
			c.forceDiscovery(t) // they may all have been replaced
		}
	}
}

// deadline returns when the next probe is due.
func (ff *failFast) deadline() (time.Duration, bool) { return ff.next, ff.failing }

// membershipChanged wants the new servers probed.
func (ff *failFast) membershipChanged(t time.Duration) { ff.next = t }

// tickFailFast begins the probe that is due at t, if one is. The one before it
// has ended, unless it asked another membership.
func (c *Core) tickFailFast(t time.Duration) {
	ff := &c.failFast
	if !ff.failing || t < ff.next {
		return
	}
	ff.next = t + c.discovery.jittered(c.cfg.FailFast.Probe)
	if f := ff.probe; f != nil {
		ff.probe = nil
		f.abandoned = true
		c.end(t, f)
	}
	if len(c.members.servers) == 0 {
		return // a membership will be probed when there is one
	}
	f := c.flights.get()
	if f == nil {
		return
	}
	f.pins++ // the table's
	f.probe = true
	if c.encode(f, probe()) != nil {
		c.flights.unpin(f) // entropy has failed; the next one tries again
		return
	}
	c.begin(t, f)
	ff.probe = f
	c.stats.Probes++
}

// probe asks for something that every server can answer and that takes nothing.
func probe() *Request {
	return &Request{Resources: []wire.Resource{{Bucket: ident.Bucket(ProbeBucket, 1, 1), Window: 1, Rate: 1}}}
}

// stopFailFast ends failing fast for good.
func (c *Core) stopFailFast() { c.failFast.failing, c.failFast.probe = false, nil }
