package limiter

// How much work a call does for what has expired: enough that the backlog shrinks however much a
// call adds, and little enough that no call is long.
const (
	// A bucket or tracker is passed by the wheel at most once a level, an identity by the calendar once,
	// and once more for being prolonged.
	stepsPerBlock = 8
	stepsPerCall  = 8
	// lastResort is how many records a call looks at before it says that a table is full.
	lastResort = 64
	// prolonged is how many prolonged identities a call puts in order before it takes the next for the
	// first.
	prolonged = 64
	// samplesAStep is how many samples the wheel takes from a tracker at a time.
	samplesAStep = 16
)

// Reclaim takes back what has expired, at most steps records of each kind. It returns false when
// nothing more has. Every decision does some of this; call it for a tenant that asks nothing, whose
// memory would wait for its next request.
func (e *Engine) Reclaim(now Time, steps int) (more bool) {
	e.advance(now)
	left := e.reclaim(steps, steps, steps)
	pages := steps
	for pages > 0 && e.answers.reclaim(e.now) {
		pages--
	}
	return min(left, pages) == 0 && steps > 0
}

// reclaim takes back expired state, so many steps each of buckets, of trackers and of identities. It
// returns the fewest steps that any did not use.
func (e *Engine) reclaim(buckets, trackers, identities int) (left int) {
	before := tick(e.now)
	for buckets > 0 && e.buckets.reclaim(e.now, before) {
		buckets--
	}
	for trackers > 0 && e.trackers.reclaim(e.now, before) {
		trackers--
	}
	fresh := e.fresh()
	for identities > 0 && e.dedup.reclaim(fresh) {
		identities--
	}
	e.answers.reclaim(e.now)
	return min(buckets, trackers, identities)
}
