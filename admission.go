package weir

import (
	"context"
	"time"
)

// An Admission is a request around a piece of work.
type Admission struct {
	// Request is asked before the work.
	Request Request
	// Trackers are told how long the work took; nil means those of the request's
	// guards, each once.
	Trackers []LatencyTracker
}

// RejectedError is the error of an admission whose request was rejected. It
// matches [ErrRejected].
type RejectedError struct {
	Decision Decision
}

// Error says which buckets and guards are to blame.
func (e *RejectedError) Error() string { return "weir: " + e.Decision.String() }

// Is reports whether target is [ErrRejected].
func (e *RejectedError) Is(target error) bool { return target == ErrRejected }

// Do asks, runs work if the request was granted, measures how long it took with
// the monotonic clock and reports that, once. So err is nil only if work ran and
// returned nil:
//
//   - without a decision, err is that of [Client.Acquire], and work did not run;
//   - rejected, err is a [*RejectedError], and work did not run;
//   - granted, work ran, once, and err is exactly what it returned.
//
// d.Granted() tells whether work ran. Work that panics is measured and reported
// too, and the panic goes on. A report that fails changes nothing but
// [Client.Stats].
func (c *Client) Do(ctx context.Context, a Admission, work func(context.Context) error) (d Decision, err error) {
	d, err = c.Acquire(ctx, a.Request)
	if err != nil {
		return d, err
	}
	if !d.Granted() {
		return d, &RejectedError{Decision: d}
	}
	trackers, guards := a.Trackers, a.Request.Guards
	start := time.Now()
	defer func() { c.reportWork(trackers, guards, time.Since(start)) }()
	return d, work(ctx)
}

// reportWork tells trackers how long work took: those named or, if that is nil,
// those of the guards.
func (c *Client) reportWork(trackers []LatencyTracker, guards []Guard, took time.Duration) {
	var space [4]Observation // for an ordinary admission nothing is allocated
	obs := space[:0]
	for _, t := range trackers {
		obs = append(obs, t.Took(took))
	}
	if trackers == nil {
		for i := range guards {
			if t := guards[i].Tracker; !observed(obs, t) {
				obs = append(obs, t.Took(took))
			}
		}
	}
	if len(obs) == 0 {
		return
	}
	if err := c.Report(obs...); err != nil {
		c.mu.Lock()
		c.counts.lostReports++
		c.mu.Unlock()
	}
}

func observed(obs []Observation, t LatencyTracker) bool {
	for i := range obs {
		if obs[i].Tracker == t {
			return true
		}
	}
	return false
}
