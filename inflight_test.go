package weir

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// bounded makes a client that has at most so many undecided requests.
func bounded(n int) func(*Config) { return func(cfg *Config) { cfg.MaxInFlight = n } }

// crowd asks n times at once and returns when all of it is under way.
func crowd(ctx context.Context, t *testing.T, c *Client, n int) *sync.WaitGroup {
	t.Helper()
	var asking sync.WaitGroup
	for range n {
		asking.Go(func() {
			if _, err := c.Acquire(ctx, oneToken()); errors.Is(err, ErrTooManyInFlight) {
				t.Error("one of those that are allowed:", err)
			}
		})
	}
	synctest.Wait()
	if s := c.Stats(); s.InFlight != n {
		t.Fatalf("%d in flight, want %d", s.InFlight, n)
	}
	return &asking
}

// expectFull expects that one more fails at once and sends nothing.
func expectFull(t *testing.T, c *Client) {
	t.Helper()
	before := c.Stats()
	for range 3 {
		if d, err := took(c); d != 0 || !errors.Is(err, ErrTooManyInFlight) {
			t.Errorf("%v after %v", err, d)
		}
	}
	if d, err := c.Acquire(context.Background(), Request{}); err != nil || !d.Granted() {
		t.Errorf("the request for nothing needs no place: %v, %v", d, err)
	}
	if s := c.Stats(); s.Sent != before.Sent || s.Submitted != before.Submitted+1 || s.InFlight != before.InFlight {
		t.Errorf("%+v", s)
	}
}

// Whichever way the requests in flight end, their places are free again: as many
// as there are, and not one more.
func TestPlacesAreFreeAgain(t *testing.T) {
	const places = 4
	for name, tt := range map[string]struct {
		answer time.Duration // 0: none
		end    func(cancel func())
	}{
		"decided":   {25 * time.Millisecond, func(func()) {}},
		"timed out": {0, func(func()) { pass(horizon) }},
		"canceled":  {0, func(cancel func()) { cancel() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.servers[0].Do(func(e *exchange) { e.Delay, e.Silent = tt.answer, tt.answer == 0 })
				c := w.client(bounded(places))
				for round := range 3 {
					ctx, cancel := context.WithCancel(context.Background())
					asking := crowd(ctx, t, c, places)
					expectFull(t, c)
					tt.end(cancel)
					asking.Wait()
					cancel()
					if n := c.Stats().InFlight; n != 0 {
						t.Fatalf("round %d: %d in flight", round, n)
					}
				}
			})
		})
	}
}

// What could not be sent has no place any more either.
func TestPlacesOfWhatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 4
		w := newWorld(t, 2)
		w.silence(0, 1)
		c := w.client(bounded(places))
		w.net.SetLink(func(udp.Packet) udp.Fate { return udp.Fate{Err: syscall.ENETUNREACH} })
		for range 3 * places {
			if d, err := took(c); d != 0 || !errors.Is(err, ErrIO) || !errors.Is(err, syscall.ENETUNREACH) {
				t.Errorf("%v after %v", err, d)
			}
		}
		w.net.SetLink(nil)
		asking := crowd(context.Background(), t, c, places)
		expectFull(t, c)
		asking.Wait()
	})
}

// Many more callers than places: each is decided or refused at once, there are
// never more in flight than allowed, and no place is lost.
func TestMoreCallersThanPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, callers = 10, 200
		w := newWorld(t, 2)
		c := w.client(bounded(places))
		for _, s := range w.servers {
			s.Do(func(e *exchange) {
				e.Delay = time.Duration(rand.IntN(80)) * time.Millisecond
				e.Silent = rand.IntN(10) == 0
			})
		}
		ctx, cancel := context.WithCancel(context.Background())
		var asking sync.WaitGroup
		var refused, undecided, given, granted atomic.Int64
		for i := range callers {
			asking.Go(func() {
				for pass(time.Duration(i) * 17 * time.Microsecond); ctx.Err() == nil; pass(time.Duration(1+rand.IntN(20)) * time.Millisecond) {
					one, giveUp := context.WithTimeout(context.Background(), time.Duration(1+rand.IntN(100))*time.Millisecond)
					start := time.Now()
					_, err := c.Acquire(one, oneToken())
					giveUp()
					switch {
					case err == nil:
						granted.Add(1)
					case errors.Is(err, ErrTooManyInFlight):
						refused.Add(1)
						if d := time.Since(start); d != 0 {
							t.Errorf("refused after %v", d)
						}
					case errors.Is(err, ErrTimeout):
						undecided.Add(1)
					case errors.Is(err, context.DeadlineExceeded):
						given.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		for range 2000 {
			pass(time.Millisecond)
			if n := c.Stats().InFlight; n > places {
				t.Fatalf("%d in flight", n)
			}
		}
		cancel()
		asking.Wait()
		if granted.Load() == 0 || refused.Load() == 0 || undecided.Load() == 0 || given.Load() == 0 {
			t.Errorf("%d granted, %d refused, %d timed out, %d given up", granted.Load(), refused.Load(), undecided.Load(), given.Load())
		}
		w.silence(0, 1)
		last := crowd(context.Background(), t, c, places)
		expectFull(t, c)
		last.Wait()
	})
}
