package sim

import "github.com/weirhq/weir/core"

// Summary counts what happened in a run.
type Summary struct {
	Events   uint64
	Requests uint64 // that clients made, refused ones included
	Refused  uint64 // at once, with nothing sent
	Outcomes [core.SendFailed + 1]uint64
	Sent     [core.SendKinds]uint64 // datagrams by kind
	Answers  uint64                 // that servers sent
	Lost     uint64                 // copies of either
	Reports  uint64

	// What the run needed at most at one time.
	Datagrams int // under way or waiting
	Pending   int // requests
	Planned   int // events
}

// Summary returns what was counted so far.
func (w *World) Summary() Summary {
	w.counts.Requests = w.asked
	w.counts.Datagrams = w.pool.made
	w.counts.Planned = cap(w.queue.heap)
	return w.counts
}
