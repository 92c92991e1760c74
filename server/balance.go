package server

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// steerEvery is how long a step of a balancer is.
const steerEvery = 500 * time.Millisecond

// When a balancer begins and ends. Shares are of the mean load of all workers.
const (
	startShare = 1.15 // more than this is too much, if it lasts for
	startSteps = 2    // steps
	endShare   = 1.08 // this is good enough
	minLoad    = 500  // datagrams for each worker in a step; under that there is nothing to gain
)

// How a round goes: flows are counted for one step, some are asked to move for askSteps,
// and what they do then shows after settleSteps.
const (
	askSteps    = 3
	settleSteps = 1
)

// A balancer that does not get anywhere rests. It does not if the least share of the
// busiest worker in vainRounds rounds is more than progress of that before.
const (
	vainRounds = 6
	progress   = 0.98
	firstRest  = 8  // steps; each is twice as long as the one before,
	lastRest   = 64 // up to this
)

// What a balancer is at.
type balancing uint8

const (
	watching balancing = iota
	counting
	asking
	settling
	resting
)

// balancer decides which flows of the workers of one address are asked to move to another
// port, by which they come to a worker anew. It has no clock and no randomness but what it
// is given, and is called by one goroutine.
//
// It watches the workers' loads. When one has clearly too much, all count their datagrams by
// flow for a step; then those with too much ask some of their flows, whose loads are at most
// the excess over the mean; then it looks again, until no worker has much more than the mean.
type balancer struct {
	workers []*flows
	random  *rand.Rand
	active  atomic.Bool // something is evened out; for others to look at

	state  balancing
	left   int      // steps until this state ends, unless it is watching
	totals []uint64 // of each worker, at the last step
	loads  []uint64 // of each worker, in the last step
	sum    uint64   // of loads
	high   []int    // for how many steps each worker has had too much
	best   float64  // the least share of the busiest worker so far
	vain   int      // rounds since that
	rest   int      // how long the next rest is, in steps
}

func newBalancer(workers []*flows, random *rand.Rand) *balancer {
	n := len(workers)
	return &balancer{
		workers: workers, random: random, rest: firstRest,
		totals: make([]uint64, n), loads: make([]uint64, n), high: make([]int, n),
	}
}

// step tells the balancer how many datagrams each worker has had since the beginning, at a
// time in ns. It is to be called about every steerEvery; what counts is how the loads
// between two calls compare.
func (b *balancer) step(now int64, totals []uint64) {
	b.measure(totals)
	if b.sum < uint64(minLoad*len(b.workers)) {
		b.end(watching, 0)
		return
	}
	if b.left > 1 {
		b.left--
		return
	}
	switch b.state {
	case watching:
		b.watch(now)
	case counting:
		b.judge(now)
	case asking:
		b.dismiss()
		b.state, b.left = settling, settleSteps
	case settling:
		b.count(now)
	case resting:
		b.end(watching, 0)
	}
}

func (b *balancer) measure(totals []uint64) {
	b.sum = 0
	for i, n := range totals {
		b.loads[i] = n - b.totals[i]
		b.totals[i] = n
		b.sum += b.loads[i]
	}
}

// share is the load of a worker as a part of the mean.
func (b *balancer) share(i int) float64 {
	return float64(b.loads[i]) * float64(len(b.loads)) / float64(b.sum)
}

func (b *balancer) busiest() (share float64) {
	for i := range b.loads {
		share = max(share, b.share(i))
	}
	return share
}

// watch begins to even out what a worker has had too much for long enough.
func (b *balancer) watch(now int64) {
	lasts := false
	for i := range b.high {
		if b.share(i) <= startShare {
			b.high[i] = 0
			continue
		}
		b.high[i]++
		lasts = lasts || b.high[i] >= startSteps
	}
	if b.busiest() <= endShare {
		b.rest = firstRest
	}
	if lasts {
		b.best, b.vain = math.Inf(1), 0
		b.active.Store(true)
		b.count(now)
	}
}

func (b *balancer) count(now int64) {
	for _, w := range b.workers {
		w.count(now)
	}
	b.state, b.left = counting, 1
}

// judge ends a step in which flows were counted: with the loads good, with a rest, or with
// some flows to ask.
func (b *balancer) judge(now int64) {
	share := b.busiest()
	if share <= endShare {
		b.end(watching, 0)
		return
	}
	b.vain++
	if share < b.best*progress {
		b.best, b.vain = share, 0
	}
	if b.vain >= vainRounds || b.flows() < len(b.workers) || b.ask(now) == 0 {
		b.end(resting, b.rest)
		b.rest = min(2*b.rest, lastRest)
		return
	}
	b.state, b.left = asking, askSteps
}

func (b *balancer) flows() (n int) {
	for _, w := range b.workers {
		n += w.seen()
	}
	return n
}

// ask has each worker with too much ask some of its flows to move, and returns how many.
func (b *balancer) ask(now int64) (chosen int) {
	mean := b.sum / uint64(len(b.loads))
	for i, w := range b.workers {
		if b.share(i) > endShare {
			chosen += w.ask(now, b.loads[i]-mean, b.random)
		} else {
			w.rest()
		}
	}
	return chosen
}

// end ends what it is at, with all workers at rest.
func (b *balancer) end(next balancing, steps int) {
	b.dismiss()
	clear(b.high)
	b.active.Store(false)
	b.state, b.left = next, steps
}

func (b *balancer) dismiss() {
	for _, w := range b.workers {
		w.rest()
	}
}
