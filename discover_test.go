package weir

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
)

var errNameServer = errors.New("the name server is on fire")

// discovered returns a client that finds the world's servers in z.
func (w *world) discovered(z *zone) *Client {
	return w.client(func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", z })
}

// discoverable returns a world and a zone with its servers.
func discoverable(t *testing.T, n int, ttl time.Duration) (*world, *zone) {
	w := newWorld(t, n)
	z := new(zone)
	z.set(ttl, w.members()...)
	return w, z
}

func (w *world) members() []discovery.Server { return memberList(w.servers...) }

func memberList(servers ...*responder) []discovery.Server {
	var members []discovery.Server
	for _, s := range servers {
		members = append(members, s.Member())
	}
	return members
}

func TestAcquireWaitsForTheFirstDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 2, time.Minute)
		time.AfterFunc(3*time.Second, z.block())
		c := w.discovered(z)
		start := time.Now()
		if d := acquire(t, c); d.Server() != 1000 || d.Elapsed() != 0 || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", d, time.Since(start))
		}
		if servers := c.Servers(); len(servers) != 2 || servers[0].ID != 1000 || servers[1].Addrs[0] != w.servers[1].Member().Addrs[0] {
			t.Errorf("%v", servers)
		}
	})
}

// A context without a deadline never makes Acquire hang: it waits for the
// attempt under way, and later calls fail at once until the next.
func TestAcquireWithoutServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 1, time.Minute)
		z.fail(errNameServer)
		c := w.discovered(z)
		for range 100 {
			start := time.Now()
			_, err := c.Acquire(context.Background(), oneToken())
			if !errors.Is(err, ErrNoServers) || !errors.Is(err, errNameServer) || time.Since(start) != 0 {
				t.Fatalf("%v after %v", err, time.Since(start))
			}
		}
		if n := z.count(); n != 1 {
			t.Errorf("100 calls made %d lookups", n)
		}
		z.set(time.Minute, w.members()...)
		pass(1500 * time.Millisecond) // a forced refresh comes within a second and its jitter
		acquire(t, c)
	})
}

func TestAcquireWaitsForALaterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 1, time.Minute)
		z.fail(errNameServer)
		c := w.discovered(z)
		synctest.Wait()
		z.set(time.Minute, w.members()...)
		time.AfterFunc(5*time.Second, z.block())
		pass(2 * time.Second) // the second attempt is under way
		acquire(t, c)
	})
}

func TestLookupsThatNeverReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 1, time.Minute)
		z.block()
		c := w.discovered(z)
		start := time.Now()
		_, err := c.Acquire(context.Background(), oneToken())
		if !errors.Is(err, ErrNoServers) || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// While servers are known nobody waits for a refresh, and what is known stays
// when it fails.
func TestRefreshHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 1, 5*time.Second)
		c := w.discovered(z)
		acquire(t, c)
		release := z.block()
		for range 30 {
			pass(time.Second)
			start := time.Now()
			acquire(t, c)
			if time.Since(start) != 0 {
				t.Errorf("a request waited for %v", time.Since(start))
			}
		}
		s := c.Stats()
		if s.RefreshFailures == 0 || s.Lookups < 4 {
			t.Errorf("%d lookups, %d refreshes failed", s.Lookups, s.RefreshFailures)
		}
		release()
	})
}

// A resolver that dies and returns.
func TestResolverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 2, 2*time.Second)
		c := w.discovered(z)
		acquire(t, c)
		z.fail(errNameServer)
		pass(10 * time.Second)
		acquire(t, c)
		w.servers[0].Stop() // replaced by a younger one
		replacement := w.addServer(3)
		z.set(2*time.Second, w.servers[1].Member(), replacement.Member())
		pass(3 * time.Minute) // longer than any backoff
		if d := acquire(t, c); d.Server() != 2000 {
			t.Errorf("%v", d)
		}
		if servers := c.Servers(); len(servers) != 2 || servers[1].ID != 3000 {
			t.Errorf("%v", servers)
		}
	})
}

func TestDial(t *testing.T) {
	second := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	endless := func(*testing.T) context.Context { return context.Background() }
	tests := map[string]struct {
		ctx     func(*testing.T) context.Context
		prepare func(*world, *zone)
		errs    []error // none: it succeeds
		after   time.Duration
	}{
		"at once":                       {endless, func(*world, *zone) {}, nil, 0},
		"with patience":                 {second, func(*world, *zone) {}, nil, 0},
		"fails, ctx without a deadline": {endless, func(_ *world, z *zone) { z.fail(errNameServer) }, []error{ErrNoServers, errNameServer}, 0},
		"fails until the deadline":      {second, func(_ *world, z *zone) { z.fail(errNameServer) }, []error{ErrNoServers, errNameServer, context.DeadlineExceeded}, 30 * time.Second},
		"hangs, ctx without a deadline": {endless, func(_ *world, z *zone) { z.block() }, []error{ErrNoServers}, 10 * time.Second},
		"fails at first, succeeds later": {second, func(w *world, z *zone) {
			z.fail(errNameServer)
			time.AfterFunc(500*time.Millisecond, func() { z.set(time.Minute, w.members()...) })
		}, nil, -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, z := discoverable(t, 1, time.Minute)
				tt.prepare(w, z)
				c := w.discovered(z)
				start := time.Now()
				err := c.awaitServers(tt.ctx(t))
				if len(tt.errs) == 0 && err != nil || len(tt.errs) > 0 && err == nil {
					t.Fatal(err)
				}
				for _, want := range tt.errs {
					if !errors.Is(err, want) {
						t.Errorf("%v is not %v", err, want)
					}
				}
				if tt.after >= 0 && time.Since(start) != tt.after {
					t.Errorf("after %v", time.Since(start))
				}
			})
		})
	}
}

// lookups is a resolver that hears about lookups of addresses before the zone.
type lookups struct {
	*zone
	addrs func(ctx context.Context, host string) error // beside the zone's, or in place of them
}

func (l lookups) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	err := l.addrs(ctx, host)
	if ctx.Err() != nil {
		return nil, 0, err
	}
	addrs, ttl, failed := l.zone.LookupAddrs(ctx, host)
	return addrs, ttl, cmp.Or(failed, err)
}

// One target whose addresses do not come holds back its own server only.
func TestOneLookupHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 3, time.Minute)
		oldest := w.servers[0].Member().ID.Label() + ".rl.test"
		hanging := lookups{z, func(ctx context.Context, host string) error {
			if host == oldest {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
		c := w.client(func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", hanging })
		start := time.Now()
		if d := acquire(t, c); d.Server() != 2000 || time.Since(start) != 500*time.Millisecond {
			t.Errorf("%v after %v", d, time.Since(start))
		}
		if s := c.Stats(); len(c.Servers()) != 2 || s.RefreshFailures != 0 {
			t.Errorf("%v, %d refreshes failed", c.Servers(), s.RefreshFailures)
		}
		pass(10 * time.Second)
		if s := c.Stats(); len(c.Servers()) != 2 || s.RefreshFailures != 1 {
			t.Errorf("%v, %d refreshes failed", c.Servers(), s.RefreshFailures)
		}
	})
}

// A question for one family that fails takes no address of that family away; an
// answer that there is none does.
func TestOneFamilyFails(t *testing.T) {
	for _, tt := range []struct{ network, found, want string }{
		{"ip4", "[2001:db8::9]:1", "192.0.2.1:1 [2001:db8::9]:1"},
		{"ip6", "192.0.2.9:1", "192.0.2.9:1 [2001:db8::1]:1"},
		{"", "192.0.2.9:1", "192.0.2.9:1"}, // none fails
	} {
		synctest.Test(t, func(t *testing.T) {
			w, z := discoverable(t, 0, time.Minute)
			set := func(addrs ...string) {
				member := discovery.Server{ID: 5}
				for _, a := range addrs {
					member.Addrs = append(member.Addrs, netip.MustParseAddrPort(a))
				}
				z.set(2*time.Second, member)
			}
			var partial atomic.Pointer[discovery.PartialError]
			set("192.0.2.1:1", "[2001:db8::1]:1")
			c := w.client(func(cfg *Config) {
				cfg.Zone, cfg.Resolver = "rl.test", lookups{z, func(context.Context, string) error {
					if e := partial.Load(); e != nil {
						return e
					}
					return nil
				}}
			})
			pass(time.Second)
			if tt.network != "" {
				partial.Store(&discovery.PartialError{Network: tt.network, Err: errNameServer})
			}
			set(tt.found)
			pass(2 * time.Second)
			var got []string
			for _, a := range c.Servers()[0].Addrs {
				got = append(got, a.String())
			}
			if s := c.Stats(); strings.Join(got, " ") != tt.want || s.RefreshFailures != 0 {
				t.Errorf("with %q failing: %v, want %s; %d refreshes failed", tt.network, got, tt.want, s.RefreshFailures)
			}
		})
	}
}

// Dial on the real machine: a static membership is known at once, an error of
// New is passed on, and a client that failed leaves nothing behind.
func TestDialForReal(t *testing.T) {
	if _, err := Dial(context.Background(), Config{}); err == nil {
		t.Error("a client without a key was made")
	}
	key := testKey(t, apikey.AuthAES)
	member, err := discovery.ParseServer("1@127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(context.Background(), Config{Key: key, Servers: []discovery.Server{member}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	z := new(zone)
	z.fail(errNameServer)
	_, err = Dial(context.Background(), Config{Key: key, Domain: "c-7.rl.test", Resolver: z})
	if !errors.Is(err, ErrNoServers) || !strings.Contains(err.Error(), "_ratelimitly._udp.c-7.rl.test") {
		t.Error(err)
	}
}
