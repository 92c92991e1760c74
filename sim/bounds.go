package sim

import (
	"fmt"
	"math/bits"
	"time"
)

// A run is bounded, so that a slip such as a rate in nanoseconds is an error at once, and not a machine
// that is busy for weeks or out of memory.
const (
	maxRequests = 100_000_000    // of a run: some twenty minutes of a processor
	maxEvents   = 10_000_000_000 // of a run
	maxBurst    = 1 << 20        // requests that all clients make at one instant
	maxBuckets  = 1 << 20        // of all families together
	maxPlanned  = 1 << 22        // events at one time, datagrams under way among them
	maxPending  = 1 << 22        // requests at one time that are undecided, or whose work waits or is done
	maxFollowed = 1 << 22        // requests at one time that a Measurer keeps in mind
)

// checkAmount bounds what the clients will ask, as far as that can be told before. What callers of closed
// loops ask is bounded in the run.
func (c *checker) checkAmount() {
	if c.wrong != nil {
		return
	}
	var requests, atOnce uint64
	for i := range c.s.Clients {
		g := &c.s.Clients[i]
		a, at := &g.Arrivals, fmt.Sprintf("Clients[%d].Arrivals", i)
		clients := uint64(g.count())
		if a.Kind == ArriveBurst || a.Kind == ArriveClosed {
			atOnce += clients * uint64(a.Size)
			c.that(atOnce <= maxBurst, at, "with the clients before, these ask %d requests at one instant, more than %d; take fewer clients, or fewer at once", atOnce, maxBurst)
		}
		requests = plus(requests, times(clients, a.expected(c.s.Length)))
		c.that(requests <= maxRequests, at, "with the clients before, these ask more than %d requests in %v; ask less often, or for a shorter time", maxRequests, c.s.Length)
	}
}

// expected returns about how many requests one client makes, at most; for closed loops it is not known.
func (a *Arrivals) expected(length time.Duration) uint64 {
	if a.Stop > 0 {
		length = min(length, a.Stop)
	}
	if length <= a.Start {
		return 0
	}
	arrivals := uint64(0)
	if a.Every > 0 {
		arrivals = uint64((length-a.Start-1)/a.Every) + 1
	}
	switch a.Kind {
	case ArriveConstant, ArrivePoisson:
		return arrivals
	case ArriveBurst:
		return times(arrivals, uint64(a.Size))
	case ArriveTrace:
		return uint64(len(a.Times))
	}
	return 0
}

// times returns a·b, or the greatest number if it is more than that.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return 1<<64 - 1
	}
	return lo
}

// plus returns a+b, or the greatest number if it is more than that.
func plus(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return 1<<64 - 1
	}
	return sum
}

// bound ends a run that has become too much.
func (w *World) bound() {
	switch {
	case w.asked > maxRequests:
		w.fail("there are more than %d requests; make the scenario shorter, or let clients ask less often", maxRequests)
	case w.counts.Events > maxEvents:
		w.fail("there are more than %d events; make the scenario shorter", uint64(maxEvents))
	case len(w.queue.heap) > maxPlanned:
		w.fail("more than %d datagrams and other events are under way at one time; ask less often, or make delays shorter", maxPlanned)
	case w.counts.Pending-len(w.spare) > maxPending:
		w.fail("more than %d requests wait for a decision or for their work at one time; ask less often, or bound the service's queue", maxPending)
	}
}
