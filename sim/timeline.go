package sim

import (
	"math"
	"time"
)

// index returns the bin of a time; what is behind the last belongs to that.
func (t *Timeline) index(at time.Duration) int {
	return min(int(at/t.Bin), len(t.Bins)-1)
}

const forGood = time.Duration(math.MaxInt64)

// faultSpan is a fault and what is seen of it while the run goes on.
type faultSpan struct {
	fault      int
	begin, end time.Duration // end is forGood until it has ended
	// calm is when disagreement is looked for from: the end of the fault, its beginning if it is for
	// good; forGood until then.
	calm      time.Duration
	last      time.Duration // submit of the last request that servers disagreed about, from calm on
	disagreed uint64
}

// faultSpans are the faults of a run in the order of their beginnings.
type faultSpans []faultSpan

// record takes in that a fault begins or ends. permanent tells that its end is no return.
func (s *faultSpans) record(fault int, at time.Duration, up, permanent bool) {
	if up {
		span := faultSpan{fault: fault, begin: at, end: forGood, calm: forGood}
		if permanent {
			span.calm = at
		}
		*s = append(*s, span)
		return
	}
	for i := range *s {
		if span := &(*s)[i]; span.fault == fault && span.end == forGood {
			span.end = at
			span.calm = min(span.calm, at)
		}
	}
}

// underWay tells whether a fault is.
func (s faultSpans) underWay() bool {
	for i := range s {
		if s[i].end == forGood {
			return true
		}
	}
	return false
}

// clear tells whether no fault was under way at any instant of [from, to).
func (s faultSpans) clear(from, to time.Duration) bool {
	for i := range s {
		// One that begins and ends at once lasts that instant.
		if s[i].begin < to && max(s[i].end, s[i].begin+1) > from {
			return false
		}
	}
	return true
}

// next returns when the first fault after a time begins, forGood if none has yet.
func (s faultSpans) next(after time.Duration) time.Duration {
	for i := range s {
		if s[i].begin > after {
			return s[i].begin
		}
	}
	return forGood
}

// watchedUntil returns when the first fault begins at or after the end of a span, those aside that began
// with it.
func (s faultSpans) watchedUntil(span *faultSpan) time.Duration {
	return s.next(max(span.calm-1, span.begin))
}

// disagreed notes that servers disagreed about a request.
func (s faultSpans) disagreed(submit time.Duration) {
	for i := range s {
		if span := &s[i]; span.calm <= submit && submit < s.watchedUntil(span) {
			span.disagreed++
			span.last = max(span.last, submit)
		}
	}
}

// The availability at which a fault is over.
const recoveredPPM = 999_000

// effects returns what each fault did.
func (s faultSpans) effects(t *Timeline, length time.Duration) []FaultEffect {
	effects := make([]FaultEffect, 0, len(s))
	for i := range s {
		span := &s[i]
		e := FaultEffect{Fault: span.fault, Begin: span.begin, Disagreed: span.disagreed}
		e.End = max(span.begin, min(span.end, length))
		e.dip(t, s.next(span.begin), length)
		if span.calm < length {
			e.Watched = min(s.watchedUntil(span), length) - span.calm
		}
		if span.disagreed > 0 {
			e.Convergence = span.last - span.calm
		}
		effects = append(effects, e)
	}
	return effects
}

// dip looks at the bins from that in which the fault began to the one before that in which the next
// one did. From the length on, when nobody submits any more, there are none.
func (e *FaultEffect) dip(t *Timeline, next, length time.Duration) {
	e.Lowest, e.Recovered = 1_000_000, true
	if e.Begin >= length {
		return
	}
	first, beyond := t.index(e.Begin), len(t.Bins)
	if next < length {
		beyond = max(t.index(next), first+1)
	}
	var submitted, lost uint64
	for i := first; i < beyond; i++ {
		b := &t.Bins[i]
		if b.Submitted == 0 {
			continue
		}
		share := PerMillion(b.Decided * 1_000_000 / b.Submitted)
		submitted += b.Submitted
		lost += b.Submitted - b.Decided
		e.Lowest = min(e.Lowest, share)
		e.Recovered = share >= recoveredPPM
		if !e.Recovered {
			e.Recovery = min(time.Duration(i+1)*t.Bin, length) - e.Begin
			e.Submitted, e.Lost = submitted, lost
		}
	}
}
