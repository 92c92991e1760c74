package server

import (
	"context"
	"time"

	"github.com/weirhq/weir/limiter"
)

const (
	sweepEvery = time.Second
	sweepSteps = 64 // records of each kind at a time; a millisecond under the tenant's lock at worst, with long trackers

	// After so many times it has taken a processor for a tenth of a millisecond, and leaves it to the workers for
	// most of one: that is half a million buckets a second. The longer there is no end, the more it takes at a
	// time: decisions take back what is left, and should have little to do.
	sweepTurns = 8
	mostTurns  = 40
	sweepPause = 500 * time.Microsecond // the runtime makes it a millisecond where nothing else runs
	growTurns  = 100                    // pauses until it takes more

	sweepTenants = 256 // between two pauses: looking at one in vain takes half a microsecond
)

// sweep takes back what has expired, until the context ends. Decisions do that too, in
// passing; a tenant that asks nothing has nobody else to free its memory, and metrics
// would show its last state forever.
func (r *registry) sweep(ctx context.Context, clock Clock) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !r.sweepAll(ctx, clock) {
			return
		}
	}
}

// sweepAll sweeps every tenant, or returns false when the context ends.
func (r *registry) sweepAll(ctx context.Context, clock Clock) bool {
	swept := 0
	for _, t := range r.tenants() {
		if swept++; swept%sweepTenants == 0 && !pause(ctx, sweepPause) {
			return false
		}
		if !t.state.sweep(ctx, clock) {
			return false
		}
	}
	return true
}

// sweep takes back all that has expired, in turns, or returns false when the context ends.
func (s *tenantState) sweep(ctx context.Context, clock Clock) bool {
	turns := sweepTurns
	for turn, pauses := 1, 0; s.reclaim(clock.Now()); turn++ { // the lock is free in between
		if turn < turns {
			continue
		}
		if !pause(ctx, sweepPause) {
			return false
		}
		turn, pauses = 0, pauses+1
		turns = min(sweepTurns+pauses/growTurns, mostTurns)
	}
	return true
}

// reclaim takes back a little of what has expired, and reports whether there may be more.
func (s *tenantState) reclaim(now limiter.Time) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Reclaim(now, sweepSteps)
}
