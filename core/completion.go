package core

import (
	"strconv"
	"time"

	"github.com/weirhq/weir/ident"
)

// Outcome is how a request ended. The zero value is none.
type Outcome uint8

// The outcomes. Granted and Rejected are decisions of a server; the others are
// no decision, after which tokens may or may not have been consumed.
const (
	Granted    Outcome = 1 + iota // every guard passed and every token was consumed
	Rejected                      // nothing was consumed
	TimedOut                      // no server's answer counted before the horizon
	SendFailed                    // nothing could be sent; Completion.Err is the last error
)

// String returns "granted", "rejected", "timed out" or "send failed".
func (o Outcome) String() string {
	switch o {
	case Granted:
		return "granted"
	case Rejected:
		return "rejected"
	case TimedOut:
		return "timed out"
	case SendFailed:
		return "send failed"
	}
	return "Outcome(" + strconv.Itoa(int(o)) + ")"
}

// Completion is the end of one request.
type Completion struct {
	Request RequestID // as Submit returned it
	Outcome Outcome   // how it ended
	// Server is who decided: 0 for a request for nothing, a timeout and a failed
	// send.
	Server ident.ServerID
	// KeepPort is the steering flag of the answer that decided: false is advice to
	// change the source port, which the core also gives as [EventSteer]. True
	// where nobody answered.
	KeepPort bool
	// Oldest tells that the server that decided was the oldest of those asked;
	// any other is the fallback for it.
	Oldest bool
	// Round is the round in which the deciding answer came, 0 to N; N+1 is the
	// final interval. For a timeout it is N+1, else 0.
	Round int
	// Final tells that Round is N+1.
	Final bool
	// Replays is how many rounds after the first were sent, at most N. A round
	// that a late timer skipped was not.
	Replays int
	// Elapsed is the time from Submit to the call that ended the request.
	Elapsed time.Duration
	// Guards and Resources are the deciding answer's, in the request's order;
	// empty where there was none.
	Guards    []GuardResult
	Resources []ResourceResult
	// Err is the last send error of SendFailed, else nil.
	Err error
	// Seen is what came in for the request until then. Its counted answers are as
	// many servers that had answered.
	Seen Seen
}

// GuardResult is a server's answer about one guard.
type GuardResult struct {
	Latency uint32 // the server's estimate in ms
	Passed  bool   // whether it is below the threshold, the request's and the server's
}

// ResourceResult is a server's answer about one resource.
type ResourceResult struct {
	ActualRate uint32 // tokens consumed in the window, those of this request included if granted
	Deficit    uint16 // tokens that were missing; 0 = covered
}

// Seen is what a request saw, to tell the reasons for a timeout apart: a dead
// server, a wrong key, a wrong clock and a blocked path look the same.
type Seen struct {
	Servers, Endpoints int    // asked
	SendFailures       uint32 // datagrams that could not be sent
	// Datagrams counts what came in by verdict. Malformed and unknown ones name
	// no request: all of the core's while this one was in flight are counted.
	Datagrams [DatagramVerdicts]uint32
}

// conclude notes how a request ended.
func (f *flight) conclude(t time.Duration, o Outcome, err error) {
	f.outcome, f.err, f.elapsed = o, err, t-f.t0
}

// announce queues the completion of a request.
func (c *Core) announce(f *flight) {
	c.stats.Outcomes[f.outcome]++
	f.pins++
	c.events.push(pendingEvent{kind: EventCompleted, f: f})
}

// completion returns what was announced. Its slices are the record's.
func (c *Core) completion(f *flight) Completion {
	done := Completion{
		Request: f.id, Outcome: f.outcome, KeepPort: true, Replays: f.replays, Elapsed: f.elapsed, Err: f.err, Seen: f.seen,
	}
	switch f.outcome {
	case TimedOut:
		done.Round, done.Final = c.timeline.Rounds(), true
	case Granted, Rejected:
		if f.members == nil { // a request for nothing
			break
		}
		done.Server = f.members.servers[f.candidate].ID
		done.KeepPort = f.keepPort
		done.Oldest = f.candidate == 0
		done.Round = f.candidateRound
		done.Final = f.candidateRound == c.timeline.Rounds()
		done.Guards, done.Resources = f.guards, f.resources
	}
	return done
}
