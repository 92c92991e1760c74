package weir

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
)

// stepping is a clock whose wall clock can be set while it runs.
type stepping struct {
	clock func() core.Time
	off   atomic.Int64 // ms
}

func (s *stepping) now() core.Time {
	now := s.clock()
	now.Wall += s.off.Load()
	return now
}

// step makes the client's wall clock one that the test can set. Servers keep the
// right one.
func (w *world) step() *stepping {
	s := &stepping{clock: w.clock}
	w.clock = s.now
	return s
}

const hour = 3_600_000 // ms

// A wall clock that is set by an hour makes a server drop what the client sends:
// each request ends at the horizon, not sooner and not later, and when the clock
// is right again the server answers.
func TestServerUnderASteppedClock(t *testing.T) {
	for _, off := range []int64{hour, -hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 0)
			right := *w // the server's world keeps its clock
			addr := netip.MustParseAddr("10.0.0.1")
			s, kill := right.startServer(w.net.Host(addr), addr)
			defer kill()
			pass(time.Second) // what is dated before the server's start is stale to it
			clock := w.step()
			c := w.client(func(cfg *Config) { cfg.Servers = []discovery.Server{{ID: s.ID(), Addrs: s.Addrs()}} })
			acquire(t, c)
			for range 3 {
				clock.off.Store(off)
				for range 3 {
					start := time.Now()
					_, err := c.Acquire(context.Background(), oneToken())
					var timeout *TimeoutError
					if !errors.As(err, &timeout) || timeout.Elapsed != 60*time.Millisecond || time.Since(start) != 60*time.Millisecond {
						t.Errorf("off by %d ms: %v after %v", off, err, time.Since(start))
					}
				}
				clock.off.Store(0)
				if d := acquire(t, c); d.Elapsed() != 0 {
					t.Errorf("the clock is right again: %v", d)
				}
			}
		})
	}
}

// The wall clock is set while requests wait in each round: they are decided and
// replayed when they would have been, and what is sent carries the one timestamp
// of its request, which is the wall clock's at the submit.
func TestStampsFollowTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		right := w.clock
		clock := w.step()
		c := w.client()
		var stamps []uint64
		w.servers[0].Do(func(e *exchange) {
			stamps = append(stamps, e.Header.Timestamp)
			e.Silent = true
		})
		for _, off := range []int64{hour, 0, -hour, hour} {
			for _, after := range []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond} { // round 0, round 1, final interval
				before := clock.off.Load()
				submitted := right().Wall + before
				time.AfterFunc(after, func() { clock.off.Store(off) })
				start := time.Now()
				stamps = nil
				if _, err := c.Acquire(context.Background(), oneToken()); !errors.Is(err, ErrTimeout) || time.Since(start) != 60*time.Millisecond {
					t.Errorf("set to %d after %v: %v after %v", off, after, err, time.Since(start))
				}
				synctest.Wait()
				if len(stamps) != 2 || stamps[0] != uint64(submitted) || stamps[1] != stamps[0] {
					t.Errorf("stamps %v, want twice %d", stamps, submitted)
				}
			}
		}
	})
}

// To a client whose clock was set back all servers start in the future. It keeps
// those that it knows, and neither asks for others all the time nor forgets to.
func TestDiscoveryUnderASteppedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		z := new(zone)
		addr := netip.MustParseAddr("10.0.0.1")
		right := *w
		s, kill := right.startServer(w.net.Host(addr), addr)
		defer kill()
		pass(2 * time.Second)
		z.set(5*time.Second, discovery.Server{ID: s.ID(), Addrs: s.Addrs()})
		clock := w.step()
		c := w.discovered(z)
		acquire(t, c)
		clock.off.Store(-hour)
		pass(10 * time.Minute)
		if known := c.Servers(); len(known) != 1 || known[0].ID != s.ID() {
			t.Errorf("known: %v", known)
		}
		stats := c.Stats()
		if stats.RefreshFailures == 0 || stats.Skipped.Future == 0 || z.count() > 60 {
			t.Errorf("%d refreshes failed, %d servers of the future, %d lookups", stats.RefreshFailures, stats.Skipped.Future, z.count())
		}
		clock.off.Store(0)
		failed := stats.RefreshFailures
		acquire(t, c)
		pass(10 * time.Minute)
		if n := c.Stats().RefreshFailures; n > failed+1 {
			t.Errorf("%d refreshes failed with the right clock", n-failed)
		}
	})
}
