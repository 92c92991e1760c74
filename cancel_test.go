package weir

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
)

// states are the states that a caller can be in: how to bring a world there.
var states = map[string]struct {
	servers int
	prepare func(*world) *Client
	after   time.Duration // until the caller is in that state
}{
	"waiting for discovery": {0, func(w *world) *Client {
		z := &zone{hold: make(chan struct{})}
		return w.client(func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", z })
	}, time.Millisecond},
	"no answer in round 0": {2, func(w *world) *Client {
		w.silence(0, 1)
		return w.client()
	}, 10 * time.Millisecond},
	"a candidate is held": {2, func(w *world) *Client {
		w.silence(0)
		return w.client()
	}, 10 * time.Millisecond},
	"replayed": {2, func(w *world) *Client {
		w.silence(0, 1)
		return w.client()
	}, 30 * time.Millisecond},
	"final interval": {1, func(w *world) *Client {
		w.silence(0)
		return w.client()
	}, 50 * time.Millisecond},
}

// silence keeps servers from answering.
func (w *world) silence(servers ...int) {
	for _, i := range servers {
		w.servers[i].Do(func(e *exchange) { e.Silent = true })
	}
}

func TestContextEnds(t *testing.T) {
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, state.servers)
				c := state.prepare(w)
				ctx, cancel := context.WithTimeout(context.Background(), state.after)
				defer cancel()
				start := time.Now()
				_, err := c.Acquire(ctx, oneToken())
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != state.after {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				if s := c.Stats(); s.InFlight != 0 || state.servers > 0 && s.Canceled != 1 {
					t.Errorf("%d in flight, %d canceled", s.InFlight, s.Canceled)
				}
			})
		})
	}
}

func TestContextThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.Acquire(ctx, oneToken()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if n, _ := received(w.servers[0]); n != 0 {
			t.Errorf("%d datagrams were sent", n)
		}
	})
}

// The context and the answer at the same instant: either is returned, never
// both, and the client goes on.
func TestContextEndsWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		w.servers[0].Do(func(e *exchange) { e.Delay = 5 * time.Millisecond })
		for range 50 {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			d, err := c.Acquire(ctx, oneToken())
			cancel()
			if err == nil != d.Granted() || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, %v", d, err)
			}
		}
		s := c.Stats()
		if s.InFlight != 0 || s.Canceled+s.Outcomes[core.Granted] != 50 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseEndsWaiters(t *testing.T) {
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, state.servers)
				c := state.prepare(w)
				errs := make(chan error, 3)
				for range cap(errs) {
					go func() {
						_, err := c.Acquire(context.Background(), oneToken())
						errs <- err
					}()
				}
				time.AfterFunc(state.after, func() { c.Close() })
				start := time.Now()
				for range cap(errs) {
					if err := <-errs; !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
				}
				if time.Since(start) != state.after {
					t.Errorf("returned after %v, closed after %v", time.Since(start), state.after)
				}
				expectClosed(t, c)
				if ports := w.host.Ports(); len(ports) != 0 {
					t.Errorf("sockets are open: %v", ports)
				}
			})
		})
	}
}

// expectClosed calls everything on a closed client.
func expectClosed(t *testing.T, c *Client) {
	t.Helper()
	ctx := context.Background()
	_, asked := c.Acquire(ctx, oneToken())
	_, nothing := c.Acquire(ctx, Request{})
	_, did := c.Do(ctx, Admission{Request: oneToken()}, func(context.Context) error {
		t.Error("a closed client ran work")
		return nil
	})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, late := c.Acquire(ended, oneToken())
	_, wrong := c.Acquire(ctx, Request{Resources: []Resource{checkout.Take(-1)}})
	for _, err := range []error{
		asked, nothing, did, late, wrong,
		c.Report(inventory.Took(time.Second)), c.Report(), c.Report(Observation{}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	c.Stats()
	c.Servers()
}

func TestCloseFromManySides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		acquire(t, c)
		closed := make(chan error)
		for range 4 {
			go func() { closed <- c.Close() }()
		}
		for range 4 {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
		expectClosed(t, c)
	})
}
