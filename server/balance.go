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

// A balancer that gets nowhere rests: if in vainRounds rounds what the hot workers together
// have over the mean has not become less by progress, in parts of the mean.
const (
	vainRounds = 6
	progress   = 0.02
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
	hot    []bool   // the workers that had, and do not have a good share yet
	best   float64  // the least that the hot ones had over the mean so far
	vain   int      // rounds since that
	rest   int      // how long the next rest is, in steps
}

func newBalancer(workers []*flows, random *rand.Rand) *balancer {
	n := len(workers)
	return &balancer{
		workers: workers, random: random, rest: firstRest,
		totals: make([]uint64, n), loads: make([]uint64, n), high: make([]int, n), hot: make([]bool, n),
	}
}

// step tells the balancer how many datagrams each worker has had since the beginning, at a
// time in ns. It is to be called about every steerEvery; what counts is how the loads
// between two calls compare.
func (b *balancer) step(now int64, totals []uint64) {
	b.measure(totals)
	if b.state != resting && b.sum < uint64(minLoad*len(b.workers)) { // a rest is no shorter for a lull
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

// watch begins to even out what a worker has had too much for long enough.
func (b *balancer) watch(now int64) {
	lasts, good := false, true
	for i := range b.high {
		share := b.share(i)
		good = good && share <= endShare
		if share <= startShare {
			b.high[i] = 0
			continue
		}
		b.high[i]++
		b.hot[i] = b.high[i] >= startSteps
		lasts = lasts || b.hot[i]
	}
	if good {
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
	excess, hot := 0.0, false
	for i := range b.hot {
		share := b.share(i)
		b.hot[i] = share > startShare || b.hot[i] && share > endShare
		hot = hot || b.hot[i]
		if share > endShare {
			excess += share - 1
		}
	}
	if !hot {
		b.end(watching, 0)
		return
	}
	b.vain++
	if excess < b.best-progress {
		b.best, b.vain = excess, 0
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

// ask has each hot worker ask some of its flows to move, and returns how many. If there are
// any, workers that only have more than a good share become hot, too. If there are none,
// that would mend nothing.
func (b *balancer) ask(now int64) (chosen int) {
	for i := range b.workers {
		if b.hot[i] {
			chosen += b.askOf(now, i)
		}
	}
	for i, w := range b.workers {
		switch {
		case b.hot[i]:
		case chosen > 0 && b.share(i) > endShare:
			b.hot[i] = true
			chosen += b.askOf(now, i)
		default:
			w.rest()
		}
	}
	return chosen
}

func (b *balancer) askOf(now int64, i int) (chosen int) {
	w := b.workers[i]
	if chosen = w.ask(now, b.loads[i]-b.mean(), b.random); chosen > 0 {
		return chosen
	}
	// All its flows are more than the excess. The least can still make it good, if another
	// worker has, or can make, room for that; for one that is too much alone none can.
	if least := w.least(now); least > 0 && b.roomBeside(i, least) {
		return w.ask(now, least, b.random)
	}
	return 0
}

// roomBeside reports whether a worker other than i would have a good share with one more
// flow of this load, or come to it by asking flows of its own.
func (b *balancer) roomBeside(i int, load uint64) bool {
	good := uint64(endShare * float64(b.mean()))
	for j, w := range b.workers {
		with := b.loads[j] + load
		if j != i && (with <= good || with-w.movable(with-b.mean()) <= good) {
			return true
		}
	}
	return false
}

func (b *balancer) mean() uint64 { return b.sum / uint64(len(b.loads)) }

// end ends what it is at, with all workers at rest.
func (b *balancer) end(next balancing, steps int) {
	b.dismiss()
	clear(b.high)
	clear(b.hot)
	b.active.Store(false)
	b.state, b.left = next, steps
}

func (b *balancer) dismiss() {
	for _, w := range b.workers {
		w.rest()
	}
}
