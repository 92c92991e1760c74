package server

import (
	"context"
	"time"

	"github.com/weirhq/weir/limiter"
)

const (
	sweepEvery = time.Second
	sweepSteps = 64 // records of each kind at a time; a millisecond under the tenant's lock at worst, with long trackers
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
		for _, t := range r.tenants() {
			for ctx.Err() == nil && t.state.reclaim(clock.Now()) {
				// The lock is free in between.
			}
		}
	}
}

// reclaim takes back a little of what has expired, and reports whether there may be more.
func (s *tenantState) reclaim(now limiter.Time) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Reclaim(now, sweepSteps)
}
