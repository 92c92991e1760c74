package limiter

// pacers are a tenant's, in a pool; those of a tracker are chained to it.

// pacer returns the tracker's pacer of a threshold, which it makes if there is none; 0 if there is no
// room for it.
func (t *trackers) pacer(r *tracker, threshold uint32, now int64) uint32 {
	n := 0
	for i := r.pacers; i != 0; i = t.pacers.at(i).next {
		if t.pacers.at(i).threshold == threshold {
			return i
		}
		n++
	}
	if n == maxPacers {
		return 0
	}
	i := t.pacers.take()
	p := t.pacers.at(i)
	*p = pacer{threshold: threshold, asked: now, spent: now, next: r.pacers}
	p.start(now)
	r.pacers = i
	return i
}

// report tells a tracker's pacers of an observation.
func (t *trackers) report(r *tracker, now int64, latency uint32) {
	for i := r.pacers; i != 0; {
		p := t.pacers.at(i)
		p.report(now, latency)
		i = p.next
	}
}

// release gives back those pacers of a tracker that nobody has asked for since a time, and reports
// whether none is left.
func (t *trackers) release(r *tracker, since int64) bool {
	for at := &r.pacers; *at != 0; {
		i := *at
		p := t.pacers.at(i)
		if p.asked > since {
			at = &p.next
			continue
		}
		if p.state != watching {
			t.active--
		}
		*at = p.next
		t.pacers.give(i)
	}
	return r.pacers == 0
}

// settleUp tells pacers what became of a request that asked them all.
func (t *trackers) settleUp(paced []uint32, whole bool, now int64) {
	for _, i := range paced {
		p := t.pacers.at(i)
		p.meter.count(now, asked)
		if whole {
			p.spend(now)
		}
	}
}
