package weir

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
)

const horizon = 60 * time.Millisecond // of the default policy

// failingAfter makes a client fail fast.
func failingAfter(timeouts int, probe time.Duration) func(*Config) {
	return func(cfg *Config) { cfg.FailFast = core.FailFastConfig{Timeouts: timeouts, Probe: probe} }
}

// speak makes servers grant again.
func (w *world) speak() {
	for _, s := range w.servers {
		s.Do(nil)
	}
}

// took asks for a token and returns how long that took.
func took(c *Client) (time.Duration, error) {
	start := time.Now()
	_, err := c.Acquire(context.Background(), oneToken())
	return time.Since(start), err
}

// An outage costs a caller the horizon as often as was configured, and then
// nothing; when the servers are back, so are decisions, within a probe interval
// and a half.
func TestFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const probe = 400 * time.Millisecond
		w := newWorld(t, 2)
		c := w.client(failingAfter(3, probe))
		acquire(t, c)
		w.silence(0, 1)
		for i := range 3 {
			if d, err := took(c); d != horizon || !errors.Is(err, ErrTimeout) || errors.Is(err, ErrFailFast) {
				t.Errorf("request %d: %v after %v", i, err, d)
			}
		}
		asked := c.Stats().Sent
		for range 1000 {
			if d, err := took(c); d != 0 || !errors.Is(err, ErrFailFast) || !errors.Is(err, ErrTimeout) {
				t.Fatalf("%v after %v", err, d)
			}
		}
		if s := c.Stats(); s.Sent != asked || s.FailedFast != 1000 || s.FailFastTrips != 1 || !s.FailingFast || s.Submitted != 4 {
			t.Errorf("%+v", s)
		}
		if d, err := c.Acquire(context.Background(), Request{}); err != nil || !d.Granted() {
			t.Errorf("the request for nothing: %v, %v", d, err)
		}
		pass(10 * time.Second)
		if n := c.Stats().Probes; n < 16 || n > 26 { // one in 400 to 600 ms
			t.Errorf("%d probes in 10 s", n)
		}
		w.speak()
		pass(probe*3/2 + time.Millisecond)
		if d, err := took(c); err != nil || d != 0 {
			t.Errorf("the servers are back: %v after %v", err, d)
		}
		if s := c.Stats(); s.FailingFast || s.Outcomes[core.TimedOut] != 3 || s.Outcomes[core.Granted] != 3 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// The error says since when, why, and what was seen last; the log says it twice,
// and not for each request.
func TestFailFastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, 1)
		c := w.client(failingAfter(2, time.Second), func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		w.silence(0)
		for range 2 {
			if _, err := took(c); !errors.Is(err, ErrTimeout) {
				t.Fatal(err)
			}
		}
		pass(500 * time.Millisecond)
		_, err := took(c)
		var failing *FailFastError
		var last *TimeoutError
		if !errors.As(err, &failing) || !errors.As(err, &last) || failing.Last != last {
			t.Fatalf("%v", err)
		}
		if want := today.Add(2 * horizon); !failing.Since.Equal(want) || failing.Timeouts != 2 || last.Elapsed != horizon || last.Seen.Servers != 1 || !failing.Timeout() {
			t.Errorf("%+v, want since %v", failing, want)
		}
		for _, want := range []string{"weir: no server answers since 2050-01-01T00:00:00Z, after 2 timeouts in a row", last.Error()} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
		if _, err := c.Do(context.Background(), Admission{Request: oneToken()}, nil); !errors.Is(err, ErrFailFast) {
			t.Error(err)
		}
		w.speak()
		pass(2 * time.Second)
		synctest.Wait()
		for _, want := range []string{`level=WARN msg="weir: no server answers; requests fail fast until one does" timeouts=2 servers=1 addresses=1`, "level=INFO msg=\"weir: a server answers again"} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("%q once in %s", want, log.String())
			}
		}
	})
}

// Fifty callers through two outages: each pays for at most a request or so per
// outage, and all are served afterwards.
func TestFailFastForManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, timeouts, probe = 50, 5, time.Second
		w := newWorld(t, 3)
		c := w.client(failingAfter(timeouts, probe))
		ctx, cancel := context.WithCancel(context.Background())
		var granted, dear, cheap atomic.Int64
		var running sync.WaitGroup
		for i := range callers {
			running.Go(func() {
				for pass(time.Duration(i) * 200 * time.Microsecond); ctx.Err() == nil; pass(10 * time.Millisecond) {
					switch d, err := took(c); {
					case err == nil:
						granted.Add(1)
					case errors.Is(err, ErrFailFast) && d == 0:
						cheap.Add(1)
					case errors.Is(err, ErrTimeout) && d == horizon:
						dear.Add(1)
					default:
						t.Errorf("%v after %v", err, d)
					}
				}
			})
		}
		for outage := range 2 {
			pass(time.Second)
			w.silence(0, 1, 2)
			pass(10 * time.Second)
			// Whoever asked in the horizon until the trip has paid once.
			if n := dear.Swap(0); n < timeouts || n > callers {
				t.Errorf("outage %d: %d requests cost the horizon", outage, n)
			}
			if n := cheap.Swap(0); n < callers*900 {
				t.Errorf("outage %d: %d requests cost nothing", outage, n)
			}
			w.speak()
			pass(probe*3/2 + time.Millisecond)
			cheap.Store(0)
			granted.Store(0)
			pass(time.Second)
			if n, failed := granted.Load(), cheap.Load()+dear.Load(); n < callers*90 || failed != 0 {
				t.Errorf("after outage %d: %d grants, %d failures", outage, n, failed)
			}
		}
		cancel()
		running.Wait()
		if s := c.Stats(); s.FailFastTrips != 2 || s.FailingFast || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// All servers are replaced. Once DNS says so, there is nothing to wait for.
func TestFailFastFollowsDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		z := &zone{}
		z.set(5*time.Second, w.servers[0].Member())
		c := w.client(failingAfter(1, time.Hour), func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", z })
		synctest.Wait()
		acquire(t, c)
		w.silence(0)
		if _, err := took(c); !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		z.set(5*time.Second, w.servers[1].Member())
		if _, err := took(c); !errors.Is(err, ErrFailFast) {
			t.Fatal(err)
		}
		pass(5*time.Second - horizon)
		synctest.Wait()
		if d := acquire(t, c); d.Server() != 2000 {
			t.Errorf("%v", d)
		}
		if n := c.Stats().Probes; n != 2 { // at once, and of the server that took over
			t.Errorf("%d probes", n)
		}
	})
}

// Closed in the middle of a probe, or between two: everything ends, and what is
// asked afterwards is told so.
func TestCloseWhileClientFailsFast(t *testing.T) {
	for _, later := range []time.Duration{0, time.Millisecond, time.Second + 520*time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			c := w.client(failingAfter(1, time.Second))
			w.silence(0)
			if _, err := took(c); !errors.Is(err, ErrTimeout) {
				t.Fatal(err)
			}
			pass(later)
			c.Close()
			if _, err := took(c); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			sent := c.Stats().Sent
			pass(time.Minute)
			if s := c.Stats(); s.Sent != sent || s.FailingFast || s.Kept != 0 || s.Sockets != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestFailFastConfigErrors(t *testing.T) {
	w := Config{Key: testKey(t, apikey.AuthAES), Zone: "rl.test"}
	w.FailFast.Timeouts = -1
	var bad *ConfigError
	if _, err := New(w); !errors.As(err, &bad) || bad.Field != "FailFast.Timeouts" {
		t.Error(err)
	}
}
