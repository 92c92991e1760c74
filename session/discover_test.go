package session

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/responder"
)

var errNameServer = errors.New("the name server is on fire")

func anything(string) bool { return true }

// rounds returns how often the servers were looked up.
func (w *world) rounds() int {
	n := 0
	for _, name := range w.zone.Asked() {
		if strings.HasPrefix(name, "_") {
			n++
		}
	}
	return n
}

// What DNS said is used for as long as it said.
func TestRefreshWhenTheTTLHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.zone.Set(domain, 5*time.Second, w.members()...)
		h := w.session(w.discovered)
		for range 5 { // at 0 s to 4 s
			h.grant()
			time.Sleep(time.Second)
		}
		if n := w.rounds(); n != 1 {
			t.Errorf("looked up %d times", n)
		}
		w.zone.Set(domain, 5*time.Second, w.servers[1].Member())
		if d := h.grant(); d.Server() != 2000 || w.rounds() != 2 { // at 5 s
			t.Errorf("%v; looked up %d times", d, w.rounds())
		}
		if known := h.Servers(); len(known) != 1 || known[0].ID != 2000 {
			t.Errorf("%v", known)
		}
		if n := h.Stats().Lookups; n != 5 {
			t.Errorf("%d lookups", n)
		}
	})
}

// A refresh that fails costs no request and keeps what was known, and not every
// call tries again.
func TestRefreshFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.zone.Set(domain, time.Second, w.members()...)
		h := w.session(w.discovered)
		h.grant()
		w.zone.Fail(errNameServer)
		const calls = 1000
		for range calls { // for 100 s
			time.Sleep(100 * ms)
			start := time.Now()
			h.grant()
			if took := time.Since(start); took != 0 {
				t.Fatalf("a request took %v", took)
			}
		}
		// 1 s, 2 s, 4 s, … with up to half as much again.
		if n := w.rounds(); n < 6 || n > 9 {
			t.Errorf("looked up %d times in %d calls", n, calls)
		}
		w.zone.Fail(nil)
		time.Sleep(90 * time.Second)
		before := w.rounds()
		h.grant()
		time.Sleep(time.Second)
		h.grant()
		if n := w.rounds() - before; n != 2 || h.Stats().RefreshFailures != uint64(before-1) {
			t.Errorf("looked up %d times once it works again; %+v", n, h.Stats())
		}
	})
}

// A resolver that hangs holds a call up for as long as a refresh may take, and
// then the request goes to who was known.
func TestResolverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.zone.Set(domain, time.Second, w.members()...)
		h := w.session(w.discovered, func(cfg *Config) { cfg.Refresh.Timeout = 3 * time.Second })
		h.grant()
		w.zone.Hang(anything)
		time.Sleep(time.Minute)
		for _, want := range []time.Duration{3 * time.Second, 0} {
			start := time.Now()
			h.grant()
			if took := time.Since(start); took != want {
				t.Errorf("a call took %v, want %v", took, want)
			}
		}
	})
}

// No call outlives its context, whatever the resolver does, and the next waits for its
// own look.
func TestContextEndsWhileLookingUp(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.zone.Set(domain, time.Second, w.members()...)
			h := w.session(w.discovered)
			if known {
				h.grant()
				time.Sleep(time.Minute)
			}
			w.zone.Hang(anything)
			ctx, cancel := context.WithTimeout(t.Context(), 70*ms)
			defer cancel()
			start := time.Now()
			_, err := h.ask(ctx, w.key, oneToken())
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 70*ms || errors.Is(err, weir.ErrNoServers) == known {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			if !known { // whoever has no more time is told so
				_, asked := h.ask(short(t), w.key, oneToken())
				var looked error
				h.State, looked = Discover(short(t), h.State, w.key)
				for _, err := range []error{asked, looked} {
					if !errors.Is(err, weir.ErrNoServers) || !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
			}
			w.zone.Hang(nil)
			start = time.Now()
			_, err = h.ask(t.Context(), w.key, oneToken())
			took := time.Since(start)
			if err != nil || known && took != 0 || !known && (took < 900*ms || took > 1500*ms) {
				t.Errorf("%v after %v; without servers the next look is waited for", err, took)
			}
			time.Sleep(1500 * ms) // a forced refresh comes within a second and its jitter
			h.grant()
		})
	}
}

// short returns a context of 10 ms.
func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
	t.Cleanup(cancel)
	return ctx
}

// hasty answers for the servers, but the context has ended by then.
type hasty struct {
	*responder.Zone
	cancel context.CancelFunc
}

func (r *hasty) LookupSRV(ctx context.Context, name string) ([]discovery.SRV, time.Duration, error) {
	r.cancel()
	return r.Zone.LookupSRV(ctx, name)
}

func TestContextEndsBetweenLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.zone.Set(domain, time.Minute, w.members()...)
		ctx, cancel := context.WithCancel(t.Context())
		resolver := &hasty{w.zone, cancel}
		h := w.session(func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", resolver })
		if _, err := h.ask(ctx, w.key, oneToken()); !errors.Is(err, context.Canceled) || len(w.zone.Asked()) != 1 {
			t.Errorf("%v; looked up %v", err, w.zone.Asked())
		}
		time.Sleep(1500 * ms)
		h.grant()
	})
}

func TestNoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.zone.Fail(errNameServer)
		h := w.session(w.discovered)
		for range 100 {
			_, err := h.ask(t.Context(), w.key, oneToken())
			if !errors.Is(err, weir.ErrNoServers) || !errors.Is(err, errNameServer) {
				t.Fatal(err)
			}
		}
		if n := w.rounds(); n != 1 {
			t.Errorf("100 calls looked up %d times", n)
		}
		for range 3 { // with each failure the time to the next refresh grows, unless one is needed
			time.Sleep(1500 * ms)
			if _, err := h.ask(t.Context(), w.key, oneToken()); !errors.Is(err, errNameServer) {
				t.Fatal(err)
			}
		}
		w.zone.Fail(nil)
		w.zone.Set(domain, time.Minute, w.members()...)
		time.Sleep(1500 * ms)
		h.grant()
	})
}

// One server whose addresses cannot be found out holds up the first call for the
// grace of a refresh, not for its timeout.
func TestOneHostHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.zone.Set(domain, time.Minute, w.members()...)
		w.zone.Hang(func(name string) bool { return strings.HasPrefix(name, "s-1000.") })
		h := w.session(w.discovered)
		start := time.Now()
		if d := h.grant(); d.Server() != 2000 || time.Since(start) != 500*ms {
			t.Errorf("%v after %v", d, time.Since(start))
		}
		w.zone.Hang(nil)
		time.Sleep(1500 * ms)
		if d := h.grant(); d.Server() != 1000 {
			t.Errorf("%v", d)
		}
	})
}

// A refresh that falls due while a request is open is left to the next call,
// whenever that comes.
func TestRefreshFallsDueWithinACall(t *testing.T) {
	for name, idle := range map[string]time.Duration{"soon": 10 * ms, "much later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				w.zone.Set(domain, time.Second, w.members()...)
				h := w.session(w.discovered)
				h.grant()
				time.Sleep(990 * ms)
				w.delay(0, 30*ms)
				w.silence(1)
				w.zone.Hang(anything)
				if d := h.grant(); d.Elapsed() != 30*ms || w.rounds() != 1 {
					t.Errorf("%v; looked up %d times", d, w.rounds())
				}
				w.zone.Hang(nil)
				w.zone.Set(domain, time.Second, w.servers[1].Member())
				w.servers[1].Do(nil)
				time.Sleep(idle)
				if d := h.grant(); d.Server() != 2000 || d.Elapsed() != 0 || len(h.Servers()) != 1 {
					t.Errorf("%v", d)
				}
			})
		})
	}
}

func TestDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.zone.Set(domain, 5*time.Second, w.members()...)
		h := w.session(w.discovered)
		var err error
		for range 3 { // at 0 s, 3 s and 6 s
			if h.State, err = Discover(t.Context(), h.State, w.key); err != nil || len(h.Servers()) != 2 {
				t.Fatalf("%v, %v", h.Servers(), err)
			}
			time.Sleep(3 * time.Second)
		}
		if n := w.rounds(); n != 2 || w.sent.Load() != 0 {
			t.Errorf("looked up %d times, sent %d datagrams", n, w.sent.Load())
		}
		w.zone.Fail(errNameServer)
		if h.State, err = Discover(t.Context(), h.State, w.key); err != nil {
			t.Errorf("servers are known: %v", err)
		}
		other := newKey(t, 8)
		for range 2 {
			h.State, err = Discover(t.Context(), h.State, other)
			if !errors.Is(err, weir.ErrNoServers) || !errors.Is(err, errNameServer) {
				t.Error(err)
			}
		}
		before := w.rounds()
		for range 3 { // it asks anew, however often that has failed, but not every time
			time.Sleep(1500 * ms)
			h.State, _ = Discover(t.Context(), h.State, other)
		}
		if n := w.rounds() - before; n != 3 {
			t.Errorf("looked up %d times", n)
		}
		time.Sleep(1500 * ms)
		if _, err := h.ask(t.Context(), other, oneToken()); !errors.Is(err, errNameServer) || w.rounds()-before != 4 {
			t.Errorf("a request that needs servers: %v; looked up %d times", err, w.rounds()-before)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if h.State, err = Discover(ctx, h.State, w.key); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		var field *weir.ConfigError
		if h.State, err = Discover(t.Context(), h.State, zeroKey); !errors.As(err, &field) {
			t.Error(err)
		}
	})
}

// A new key has its own servers, quotas and identities; the socket stays.
func TestNewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		other := newKey(t, 8)
		at := netip.MustParseAddr("10.0.0.8")
		theirs := responder.Start(t, w.net.Host(at), "10.0.0.8:29292", 500, other)
		w.zone.Set(domain, time.Minute, w.members()...)
		w.zone.Set("c-8.rl.test", time.Minute, theirs.Member())
		// What the first key asks is answered while the second's request is open.
		w.delay(0, 25*ms)
		theirs.Do(func(e *responder.Exchange) { e.Delay = 15 * ms })
		h := w.session(w.discovered)
		ctx, cancel := context.WithTimeout(t.Context(), 15*ms)
		defer cancel()
		if _, err := h.ask(ctx, w.key, oneToken()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		d, err := h.ask(t.Context(), other, oneToken())
		if err != nil || d.Server() != 500 || d.Elapsed() != 15*ms {
			t.Errorf("%v, %v", d, err)
		}
		s := h.Stats()
		if s.Datagrams[core.DatagramCounted] != 1 || s.Datagrams[core.DatagramUnknown] != 1 || s.Submitted != 1 || s.Sockets != 1 || s.Lookups != 4 {
			t.Errorf("%+v", s)
		}
		if known := h.Servers(); len(known) != 1 || known[0].ID != 500 {
			t.Errorf("%v", known)
		}
		if n := w.rounds(); n != 2 {
			t.Errorf("looked up %d times", n)
		}
		h.grant() // and back
		if asked := w.zone.Asked(); w.rounds() != 3 || !slices.Contains(asked[4:], "_ratelimitly._udp."+domain) {
			t.Errorf("%v", asked)
		}
		if l, m := w.servers[0].Log(), theirs.Log(); l.Unopenable+m.Unopenable != 0 || m.Identities() != 1 {
			t.Errorf("%+v, %+v", l, m)
		}
	})
}

// A key that cannot be used leaves the session as it was.
func TestBadKeyChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.zone.Set(domain, time.Minute, w.members()...)
		h := w.session(w.discovered)
		h.grant()
		if _, err := h.ask(t.Context(), zeroKey, oneToken()); err == nil {
			t.Error("a key is required")
		}
		h.grant()
		if n := w.rounds(); n != 1 {
			t.Errorf("looked up %d times", n)
		}
	})
}
