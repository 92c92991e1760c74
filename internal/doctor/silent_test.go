package doctor

import (
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/server"
)

// A server that has another secret, another key ID or another mode, and one that is
// not there, are all silent: that they look the same is what must be said.
func TestSilence(t *testing.T) {
	for name, key := range map[string]func(*testing.T) apikey.Key{
		"another secret": func(t *testing.T) apikey.Key { return newKey(t, apikey.AuthAES, 7) },
		"an unknown ID":  func(t *testing.T) apikey.Key { return newKey(t, apikey.AuthAES, 8) },
		"cookie mode":    func(t *testing.T) apikey.Key { return newKey(t, apikey.AuthCookie, 7) },
		"none mode":      func(t *testing.T) apikey.Key { return newKey(t, apikey.AuthNone, 7) },
		"a black hole":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := w.serve("10.0.0.1:29292")
				if key == nil {
					w.net.SetLink(func(udp.Packet) udp.Fate { return udp.Fate{Drop: true} })
				} else {
					w.key = key(t)
				}
				r := w.run(w.config(s))
				notes := []string{"silent"}
				if a := w.key.Auth(); a != apikey.AuthAES {
					notes = append(notes, "mode-"+a.String())
				}
				w.want(r, NoDecision, notes...)
				w.says(r, "silent", "look the same", "down", "firewall", "without the key ID", "another secret or mode",
					"weir_dropped_datagrams_total", "unknown_key, auth, mode, stale", "tcpdump (udp port 29292, from port 3")
				if e := r.Servers[0].Endpoints[0]; e.State != NoAnswer || e.Fan.Sent != len(fan()) || e.Fan.Answered != 0 {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// One of three servers is dead: the others prove key and clock.
func TestOneOfThreeIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b, c := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292"), w.serve("10.0.0.3:29292")
		w.net.SetLink(func(p udp.Packet) udp.Fate { return udp.Fate{Drop: p.To == a.Addrs[0]} })
		r := w.run(w.config(a, b, c))
		w.want(r, Degraded, "silent-server", "oldest-missing")
		w.says(r, "oldest-missing", a.ID.String(), "waits 20 ms")
		w.says(r, "silent-server", a.ID.String(), "servers "+b.ID.String()+", "+c.ID.String()+" answer", "clock is right")
		if p := r.Path; p.Decided != acquires || p.By[0] != b.ID || time.Duration(p.Slowest) < 20*time.Millisecond {
			t.Errorf("%+v", p)
		}
	})
}

// One is silent and the clock is wrong: what is proven comes first.
func TestSilentBesideAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292")
		w.off = time.Minute
		w.net.SetLink(func(p udp.Packet) udp.Fate { return udp.Fate{Drop: p.To == a.Addrs[0]} })
		r := w.run(w.config(a, b))
		w.want(r, NoDecision, "clock", "silent")
		w.says(r, "silent", a.ID.String(), "Repair what is told above first")
	})
}

// One of two servers has another key: the same from here, and the text says so.
func TestOneHasAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.serve("10.0.0.1:29292")
		b := w.serveWith(func(c *server.Config) {
			c.Tenants = []server.Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}
		}, "10.0.0.2:29292")
		r := w.run(w.config(a, b))
		w.want(r, Degraded, "silent-server")
		w.says(r, "silent-server", b.ID.String(), "same key", "another secret")
	})
}

// One family of a server is broken, in each of the ways in which that shows.
func TestOneFamily(t *testing.T) {
	v6 := netip.MustParseAddrPort("[fd00::1]:29292")
	for _, c := range []struct {
		name, code string
		state      State
		fate       udp.Fate
		closed     bool
	}{
		{"silent", "silent-address", NoAnswer, udp.Fate{Drop: true}, false},
		{"closed", "port-closed", Closed, udp.Fate{Drop: true}, true},
		{"no route", "no-route", NoRoute, udp.Fate{Err: syscall.ENETUNREACH}, false},
		{"blocked", "blocked-here", Blocked, udp.Fate{Err: syscall.EPERM}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := w.serve("10.0.0.1:29292", v6.String())
				w.closed[v6] = c.closed
				w.net.SetLink(func(p udp.Packet) udp.Fate {
					if p.To == v6 {
						return c.fate
					}
					return udp.Fate{}
				})
				r := w.run(w.config(s))
				w.want(r, Degraded, c.code)
				w.says(r, c.code, v6.String())
				if e := r.Servers[0].Endpoints[1]; c.fate.Err != nil && e.Fan != nil {
					t.Errorf("asked %d other stamps in vain", e.Fan.Sent)
				}
				if e := r.Servers[0].Endpoints; e[0].State != Answers || e[1].State != c.state {
					t.Errorf("%s and %s", e[0].State, e[1].State)
				}
			})
		})
	}
}

// A machine without IPv6 says so, and does not ask in vain.
func TestNoFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292", "[fd00::1]:29292")
		cfg := w.config(s)
		cfg.Stack = w.net.Host(netip.MustParseAddr("10.0.1.9"))
		r := w.run(cfg)
		w.want(r, Degraded, "no-family")
		w.says(r, "no-family", "[fd00::1]:29292")
	})
}

// A port that is closed is known at once, without the volley's seconds.
func TestClosedIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		at := netip.MustParseAddrPort("10.0.0.1:29292")
		w.closed[at] = true
		r := w.run(w.config(discovery.Server{ID: 1, Addrs: []netip.AddrPort{at}}))
		w.want(r, NoDecision, "port-closed")
		w.says(r, "port-closed", "Nothing listens at server 1 at 10.0.0.1:29292", "Start the server")
		if e := r.Servers[0].Endpoints[0]; e.Fan != nil {
			t.Errorf("asked %d other stamps", e.Fan.Sent)
		}
	})
}

// The policy's horizon is above what a server allows, which a shorter one shows.
func TestHorizonAboveCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serveWith(func(c *server.Config) { c.DedupTTLCap = 120 * time.Millisecond }, "10.0.0.1:29292")
		cfg := w.config(s)
		cfg.Client.Policy = mustPolicy(t, "unit=80ms")
		r := w.run(cfg)
		w.want(r, NoDecision, "horizon-above-cap")
		w.says(r, "horizon-above-cap", "dedup TTL of 240 ms", "answers one of 100 ms", "--dedup-ttl-cap", "Key, clock and path are right")
		if e := r.Servers[0].Endpoints[0]; e.Fan != nil {
			t.Errorf("asked %d other stamps", e.Fan.Sent)
		}
		cfg.Client.Policy = mustPolicy(t, "unit=33ms") // what it advises
		w.want(w.run(cfg), Well)
	})
}

// The policy's horizon is above the key's own quota: no client can be made.
func TestHorizonAboveQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config(w.serve("10.0.0.1:29292"))
		cfg.Client.Policy = mustPolicy(t, "unit=200ms")
		r := w.run(cfg)
		w.want(r, NoDecision, "horizon-above-quota")
		w.says(r, "horizon-above-quota", "600 ms", "300 ms", "dedup-ttl=600ms allows it")
		if e := r.Servers[0].Endpoints[0]; e.State != Answers {
			t.Errorf("the server is %s", e.State) // it is examined all the same
		}
		cfg.Client.Policy = mustPolicy(t, "strict-oldest unit=1s")
		w.says(w.run(cfg), "horizon-above-quota", "no key allows more than 2000 ms")
	})
}
