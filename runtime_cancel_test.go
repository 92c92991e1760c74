package weir

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The context ends at the very instant at which something else happens: a round
// ends, the candidate is chosen, the horizon is reached. One of the two is what
// the call returns, the request is counted once, and nothing is held on to.
func TestContextEndsAtTheInstant(t *testing.T) {
	tests := map[string]struct {
		after  time.Duration
		silent []int
		other  error // what it may return instead of the context's error; nil: a decision
		exact  bool  // it is always the context's error
	}{
		"round 0 ends":            {20 * time.Millisecond, []int{0, 1}, nil, true},
		"the candidate is chosen": {20 * time.Millisecond, []int{0}, nil, false},
		"round 1 ends":            {40 * time.Millisecond, []int{0, 1}, nil, true},
		"the horizon":             {60 * time.Millisecond, []int{0, 1}, ErrTimeout, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				w.silence(tt.silent...)
				c := w.client()
				const times = 50
				var ended uint64
				for range times {
					ctx, cancel := context.WithTimeout(context.Background(), tt.after)
					start := time.Now()
					d, err := c.Acquire(ctx, oneToken())
					cancel()
					if time.Since(start) != tt.after || d.Granted() != (err == nil) {
						t.Errorf("%v, %v after %v", d, err, time.Since(start))
					}
					switch {
					case errors.Is(err, context.DeadlineExceeded):
						ended++
					case tt.exact || !errors.Is(err, tt.other):
						t.Errorf("%v", err)
					}
				}
				s := c.Stats()
				var completed uint64
				for _, n := range s.Outcomes {
					completed += n
				}
				// A decision may be made and its caller be gone, but never the reverse.
				if s.InFlight != 0 || s.Canceled+completed != times || s.Canceled > ended {
					t.Errorf("%d in flight, %d canceled, %d completed; %d contexts ended", s.InFlight, s.Canceled, completed, ended)
				}
				for _, s := range c.sockets {
					if n := s.uses.Load(); n != 1 {
						t.Errorf("socket %v has %d uses", s.id, n)
					}
				}
			})
		})
	}
}
