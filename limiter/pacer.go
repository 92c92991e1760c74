package limiter

// Pacing: a guard that only sheds starves its own tracker, because no work means no reports, and then
// lets the whole herd in at once. So a guard that trips goes on to pace the requests that carry it.
// The rules stand in docs/pacing.md; the numbers were found with closed loops in virtual
// time (pacing_test.go).

const (
	maxPacers = 8 // thresholds of a tracker that are paced apart; further ones shed plainly

	defaultProbe = 900 // ms: no second passes without a probe

	growEvery  = 100 * nsPerMs  // pacing: how often the rate grows
	growBase   = 20             // by so many thousandths,
	growFaster = 10             // and so many more for every second since the last trip,
	growMost   = 100            // at most
	catchUp    = 5 * nsPerMs    // what a pacer catches up with at once
	settling   = 300 * nsPerMs  // pacing lasts at least so long
	pacerIdle  = 10_000_000_000 // ns without a question after which a pacer goes

	dryGaps  = 8           // the stream of reports has dried up after so many of its gaps
	dryLeast = 2 * nsPerMs // and this

	latestSamples = 5  // pacing: so many of the last samples are judged, too
	latestMost    = 16 // unless the tracker's own minimum is above this
)

// pacerState is what a pacer does.
type pacerState uint8

const (
	watching pacerState = iota // it only counts
	draining                   // the guard tripped: what is inside comes out, but for probes nothing goes in
	pacing                     // requests pass at a rate
)

// pacer paces the requests that carry one guard: one tracker with one threshold. Rates are in
// thousandths of a request per second, times in monotonic ns.
type pacer struct {
	meter
	rate      uint64
	flow      uint64 // rate of reports at the trip
	capacity  uint64 // rate at which the service completed work then, by the reports; 0: none came
	probe     int64  // ns between probes
	turn      int64  // when the next request may pass
	asked     int64  // when the last question came
	spent     int64  // when the last request passed
	tripped   int64  // when draining began
	until     int64  // when it ends at the latest
	settled   int64  // when pacing began
	grow      int64  // when the rate grows next
	reported  int64  // when the last report came
	threshold uint32 // ms
	latency   uint32 // ms: the estimate that tripped it
	last      uint32 // ms: the last report's latency
	drained   uint32 // reports since the trip
	next      uint32 // another pacer of the same tracker
	state     pacerState
}

// pace says what the guard's block shows: less than the threshold if the request may pass as far as
// this guard is concerned. est is the tracker's estimate.
func (t *trackers) pace(r *tracker, p *pacer, est uint32, now int64) uint32 {
	p.asked = now
	p.probe = t.probeInterval(r)
	if p.state == draining && p.dry(now) {
		p.settle(now)
		t.forgetAll(r)
		est = 0
	}
	if p.state == pacing {
		est = max(est, t.latest(r))
	}
	if p.state != draining && est >= p.threshold {
		if p.state == watching {
			t.active++
		}
		t.trips++
		p.trip(now, est)
	}
	if p.state == pacing && p.recovered(now) {
		p.state = watching
		t.active--
	}
	if p.state == watching {
		return est
	}
	if p.state == pacing {
		p.speedUp(now)
	}
	if now < p.turn {
		return p.latency // at least the threshold, since it tripped
	}
	return min(est, p.threshold-1)
}

// trip begins to drain: the estimate is at or over the threshold.
func (p *pacer) trip(now int64, est uint32) {
	if p.state == watching {
		p.rate = p.meter.rate(now, granted)
	}
	p.flow = p.meter.rate(now, reported)
	p.capacity = p.perGrant(p.flow, now, est)
	p.state, p.latency, p.drained = draining, est, 0
	p.tripped, p.until = now, now+int64(est)*nsPerMs
	p.turn = max(p.spent+p.probe, now+1) // the request that trips it never passes
}

// dry reports whether what was inside at the trip has come out: its time has passed, or reports have
// stopped coming.
func (p *pacer) dry(now int64) bool {
	if now >= p.until {
		return true
	}
	return p.flow > 0 && now-max(p.reported, p.tripped) > int64(dryGaps*milliNs/p.flow)+dryLeast
}

// settle ends draining with the rate to begin with: nine tenths of what the service did at full load.
func (p *pacer) settle(now int64) {
	measured := uint64(p.drained) * milliNs / uint64(max(now-p.tripped, 1))
	capacity := max(p.capacity, p.perGrant(measured, now, p.latency))
	if capacity > 0 {
		p.rate = min(p.rate, capacity) * 9 / 10
	} else {
		p.rate /= 2
	}
	p.rate = max(p.rate, milliNs/uint64(p.probe))
	p.state, p.settled, p.turn, p.grow = pacing, now, now, now+growEvery
}

// recovered reports whether there is nothing to pace: the rate is more than twice what is asked for.
func (p *pacer) recovered(now int64) bool {
	return now-p.settled >= settling && p.rate > 2*p.meter.rate(now, asked)
}

// speedUp lets the rate grow with the time since the last trip, as long as reports are good. Without
// any it does not wait for them longer than they take.
func (p *pacer) speedUp(now int64) {
	for ; now >= p.grow; p.grow += growEvery {
		since := now - p.settled
		if p.reported > p.settled && p.last >= p.threshold ||
			p.reported <= p.settled && since < int64(p.latency)*nsPerMs {
			p.grow = now + growEvery
			return
		}
		by := min(growBase+uint64(growFaster*since/1_000_000_000), growMost)
		p.rate += p.rate*by/1000 + 1
	}
}

// spend tells that a request which carries the guard was granted.
func (p *pacer) spend(now int64) {
	p.meter.count(now, granted)
	p.spent = now
	switch p.state {
	case draining:
		p.turn = now + p.probe
	case pacing:
		gap := min(int64(milliNs/p.rate), p.probe)
		p.turn = max(p.turn, now-max(gap, catchUp)) + gap
	}
}

// report takes note of a report.
func (p *pacer) report(now int64, latency uint32) {
	p.meter.count(now, reported)
	p.reported, p.last = now, latency
	p.drained++
}

// latest returns the statistic of the tracker's last few samples, by which a slow service is noticed
// long before half of all samples are from after the change; 0 if there are too few. It is the lower
// median, and the smallest where that is the estimator.
func (t *trackers) latest(r *tracker) uint32 {
	n := max(latestSamples, int(r.key.minSamples))
	if n > latestMost || int(r.count) < n {
		return 0
	}
	ring := t.mem.at(r.slab, r.class)
	var sorted [latestMost]uint32
	for k := range n {
		v := ring[(int(r.head)+int(r.count)-1-k)&(len(ring)-1)].latency
		i := k
		for ; i > 0 && sorted[i-1] > v; i-- {
			sorted[i] = sorted[i-1]
		}
		sorted[i] = v
	}
	if t.estimator == Min {
		return sorted[0]
	}
	return sorted[(n-1)/2]
}

// probeInterval returns the time between probes in ns.
func (t *trackers) probeInterval(r *tracker) int64 {
	return max(min(int64(t.probe)*nsPerMs, r.key.ttlNs()/2), nsPerMs)
}
