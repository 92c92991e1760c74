package weir

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Requests that were under way together time out together: a moment without answers
// makes a row of any length. It must not cost the callers much more than itself.
func TestFailFastAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client(failingAfter(5, time.Second))
		acquire(t, c)
		w.silence(0, 1)
		for range 20 {
			go func() { _, _ = c.Acquire(context.Background(), oneToken()) }()
		}
		pass(horizon - time.Millisecond) // the last replay is lost, too
		w.speak()
		pass(2 * time.Millisecond)
		synctest.Wait()
		if d, err := took(c); err != nil || d != 0 {
			t.Errorf("the servers are back: %v after %v", err, d)
		}
		if s := c.Stats(); s.FailFastTrips != 1 || s.Probes != 1 || s.FailingFast {
			t.Errorf("%+v", s)
		}
	})
}
