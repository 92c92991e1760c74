package doctor

import (
	"context"
	"errors"
	"net/netip"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

func mustPolicy(t *testing.T, text string) policy.Policy {
	t.Helper()
	p, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// slow delays what goes to an address and what comes from it.
func slow(at netip.AddrPort, oneWay time.Duration) func(udp.Packet) udp.Fate {
	return func(p udp.Packet) udp.Fate {
		if p.To == at || p.From == at {
			return udp.Fate{Delay: oneWay}
		}
		return udp.Fate{}
	}
}

// A round trip above the horizon is told with a policy that fits, and it does.
func TestHorizonTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.net.SetLink(slow(s.Addrs[0], 40*time.Millisecond))
		cfg := w.config(s)
		r := w.run(cfg)
		w.want(r, NoDecision, "horizon-too-short")
		w.says(r, "horizon-too-short", "horizon of 60 ms", "80 ms (median)", "Key, clock and path are right")
		m := regexp.MustCompile(`unit=\S+`).FindString(r.Diagnoses[0].Do)
		cfg.Client.Policy = mustPolicy(t, m)
		w.want(w.run(cfg), Well)
	})
}

// The advice knows the key's quota.
func TestHorizonNeedsAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.net.SetLink(slow(s.Addrs[0], 200*time.Millisecond))
		r := w.run(w.config(s))
		w.want(r, NoDecision, "horizon-too-short")
		w.says(r, "horizon-too-short", "this key allows 300", "dedup-ttl=810ms allows it")
	})
}

func TestOneServerIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292")
		w.net.SetLink(slow(b.Addrs[0], 100*time.Millisecond))
		r := w.run(w.config(a, b))
		w.want(r, Degraded, "slow-server")
		w.says(r, "slow-server", b.ID.String(), "median 200 ms")
	})
}

func TestHorizonClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.net.SetLink(slow(s.Addrs[0], 22*time.Millisecond))
		r := w.run(w.config(s))
		w.want(r, Well, "horizon-close")
		w.says(r, "horizon-close", "44 ms", "60 ms")
		if p := r.Path; p.Replays != acquires {
			t.Errorf("%+v", p)
		}
	})
}

// Every other datagram is lost.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		n := 0
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			if p.To != s.Addrs[0] {
				return udp.Fate{}
			}
			n++
			return udp.Fate{Drop: n%2 == 0}
		})
		r := w.run(w.config(s))
		w.want(r, Degraded, "loss")
		w.says(r, "loss", "Of 5 requests", "2 got no answer")
	})
}

// The first datagrams are lost, and later ones are answered: that is loss, and no
// clock.
func TestLossAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		n := 0
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			n++
			return udp.Fate{Drop: n <= DefaultProbes}
		})
		r := w.run(w.config(s))
		w.want(r, Degraded, "loss")
		w.says(r, "loss", "Of 8 requests", "5 got no answer")
		if e := r.Servers[0].Endpoints[0]; e.Long.Answered != longs {
			t.Errorf("%+v", e) // examined like any other
		}
	})
}

// So many of the first are lost that only a shifted stamp or a short dedup TTL is
// answered: neither is at fault.
func TestLossOfMany(t *testing.T) {
	for _, lost := range []int{DefaultProbes + 2, DefaultProbes + 3 + again, DefaultProbes + 3 + again + 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := w.serve("10.0.0.1:29292")
			n := 0
			w.net.SetLink(func(p udp.Packet) udp.Fate {
				n++
				return udp.Fate{Drop: n <= lost || n == lost+2 || n == lost+3}
			})
			r := w.run(w.config(s))
			w.want(r, Degraded, "loss")
		})
	}
}

// What layout 1 asks for is answered by a server of both.
func TestLayout1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config(w.serve("10.0.0.1:29292"))
		cfg.Client.Layout = wire.Layout1
		r := w.run(cfg)
		w.want(r, Well)
		if e := r.Servers[0].Endpoints[0]; e.Guards.Answered != guards || e.OtherLayout != nil {
			t.Errorf("%+v", e)
		}
	})
}

// An answer may come from another address: a client does not mind, and it is shown.
func TestAnswersFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		elsewhere := netip.MustParseAddrPort("10.0.0.8:1234")
		conn, err := w.at(elsewhere.String()).Listen(elsewhere, udp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		s := w.respond("10.0.0.1:29292", func(a *asked) []byte {
			b := a.answer(w)
			if _, err := conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: a.from}}); err != nil {
				t.Error(err)
			}
			return nil
		})
		r := w.run(w.config(s))
		w.want(r, Well)
		if e := r.Servers[0].Endpoints[0]; e.From != elsewhere {
			t.Errorf("%+v", e)
		}
	})
}

func TestLongDatagramsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.net.SetLink(func(p udp.Packet) udp.Fate { return udp.Fate{Drop: len(p.Payload) > 500} })
		r := w.run(w.config(s))
		w.want(r, Degraded, "long-lost")
		w.says(r, "long-lost", "none of 1176 bytes", "MTU")
	})
}

// Addresses answer, and a client does not get through: that is told, not hidden.
func TestClientFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config(w.serve("10.0.0.1:29292"))
		cfg.Dial = func(context.Context, weir.Config) (Asker, error) { return nil, errors.New("no room") }
		r := w.run(cfg)
		w.want(r, NoDecision, "client")
		w.says(r, "client", "no room")
	})
}

// A client that gets some decisions is degraded.
func TestClientFailsAtTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		cfg := w.config(s)
		cfg.Dial = func(context.Context, weir.Config) (Asker, error) { return &moody{id: s.ID}, nil }
		r := w.run(cfg)
		w.want(r, Degraded, "client-some")
		w.says(r, "client-some", "Of 5 requests of a client 2 were not decided")
	})
}

type moody struct {
	n  int
	id ident.ServerID
}

func (m *moody) Ask(context.Context) (Answer, error) {
	if m.n++; m.n%2 == 0 {
		return Answer{}, errors.New("not now")
	}
	return Answer{Server: m.id}, nil
}

func (*moody) Close() {}

// A server that takes layout 1 alone does not answer guards in layout 2, and one
// that answers in layout 1 whatever it was asked in is told as well.
func TestOtherLayout(t *testing.T) {
	for name, script := range map[string]func(*world, *asked) []byte{
		"takes layout 1 only": func(w *world, a *asked) []byte {
			if a.request.Guards() > 0 && a.request.Layout == wire.Layout2 {
				return nil
			}
			return a.answer(w)
		},
		"answers in layout 1": func(w *world, a *asked) []byte {
			if a.request.Guards() == 0 || a.request.Layout == wire.Layout1 {
				return a.answer(w)
			}
			return a.answerTo(w, layout1(t, a))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := w.respond("10.0.0.1:29292", func(a *asked) []byte { return script(w, a) })
				r := w.run(w.config(s))
				w.want(r, Degraded, "layout")
				w.says(r, "layout", "--layout=1", "layout 1 only")
			})
		})
	}
}

// layout1 is a request of layout 1 with the same blocks.
func layout1(t *testing.T, a *asked) *wire.RequestView {
	g := a.request.Guard(0)
	r := wire.Request{Layout: wire.Layout1, DedupTTL: 1, Guards: []wire.Guard{g}}
	for i := range a.request.Resources() {
		r.Resources = append(r.Resources, a.request.Resource(i))
	}
	return viewOf(t, &r)
}

// viewOf is a request as a server sees it.
func viewOf(t *testing.T, r *wire.Request) *wire.RequestView {
	t.Helper()
	c, err := wire.NewCredential(newKey(t, 1, 7))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.AppendRequest(nil, nil, &wire.Header{}, r)
	if err != nil {
		t.Fatal(err)
	}
	v := new(wire.RequestView)
	if err := wire.ParseRequest(b[44:], v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A server whose guards are never answered is faulty.
func TestNoGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.respond("10.0.0.1:29292", func(a *asked) []byte {
			if a.request.Guards() > 0 {
				return nil
			}
			return a.answer(w)
		})
		w.want(w.run(w.config(s)), Degraded, "guards")
	})
}

// Two entries with one ID are refused, as a client does.
func TestConfigErrors(t *testing.T) {
	w := &world{t: t, key: newKey(t, 3, 7), net: udp.NewNetwork()}
	one := discovery.Server{ID: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1")}}
	for name, cfg := range map[string]Config{
		"no key":     {Client: weir.Config{Servers: []discovery.Server{one}}},
		"one ID":     w.config(one, one),
		"no place":   {Client: weir.Config{Key: w.key, Resolver: named()}},
		"two places": {Client: weir.Config{Key: w.key, Zone: "rl.test", Hosted: true, Resolver: named()}},
		"a bad zone": {Client: weir.Config{Key: w.key, Zone: "a..b"}},
		"probes":     {Client: weir.Config{Key: w.key, Servers: []discovery.Server{one}}, Probes: MaxProbes + 1},
		"lookup":     {Client: weir.Config{Key: w.key, Servers: []discovery.Server{one}}, Lookup: -1},
	} {
		if r, err := Run(t.Context(), cfg); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Whoever gives up is not kept waiting, and gets no half report.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.key = newKey(t, 3, 7)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(gone) })
		begin := time.Now()
		r, err := Run(ctx, w.config(s))
		if r != nil || !errors.Is(err, gone) || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
