package session

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
)

// The traces of the design notes, A (1000) being the oldest: who decides, when,
// and how many datagrams each server has got in the end.
func TestTraces(t *testing.T) {
	tests := map[string]struct {
		a, b    time.Duration // negative: no answer
		server  ident.ServerID
		round   int
		elapsed time.Duration
		sent    [2]int
	}{
		"healthy":                      {5 * ms, 3 * ms, 1000, 0, 5 * ms, [2]int{1, 1}},
		"healthy, the oldest first":    {3 * ms, 5 * ms, 1000, 0, 3 * ms, [2]int{1, 2}},
		"slow oldest, within":          {19 * ms, 1 * ms, 1000, 0, 19 * ms, [2]int{1, 1}},
		"slow oldest, beyond":          {30 * ms, 1 * ms, 2000, 0, 20 * ms, [2]int{2, 1}},
		"failed oldest":                {-1, 1 * ms, 2000, 0, 20 * ms, [2]int{2, 1}},
		"all slow":                     {50 * ms, 25 * ms, 2000, 1, 25 * ms, [2]int{3, 2}},
		"only in the final interval":   {45 * ms, -1, 1000, 2, 45 * ms, [2]int{2, 3}},
		"the oldest after the horizon": {-1, 59 * ms, 2000, 2, 59 * ms, [2]int{3, 2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				for i, delay := range []time.Duration{tt.a, tt.b} {
					w.servers[i].Do(func(e *responder.Exchange) {
						e.Delay, e.Silent = delay, delay < 0 || e.Repeat > 0
					})
				}
				h := w.session()
				d := h.grant()
				if d.Server() != tt.server || d.Round() != tt.round || d.Elapsed() != tt.elapsed {
					t.Errorf("%v", d)
				}
				synctest.Wait()
				for i, want := range tt.sent {
					if l := w.servers[i].Log(); len(l.Requests) != want || l.Identities() != 1 {
						t.Errorf("server %v got %d datagrams of %d requests, want %d of 1", w.servers[i].ID, len(l.Requests), l.Identities(), want)
					}
				}
				if s := h.Stats(); s.Sockets != 1 || s.InFlight != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(func(e *responder.Exchange) {
			e.Answer.Rates[0], e.Answer.Deficits[0], e.Answer.Latencies[0] = 99, 2, 300
		})
		h := w.session()
		d, err := h.ask(t.Context(), w.key, weir.Request{
			Resources: []weir.Resource{checkout.Take(3)},
			Guards:    []weir.Guard{inventory.Below(250 * ms)},
		})
		r, g := d.Resources(), d.Guards()
		if err != nil || d.Granted() || len(r) != 1 || r[0].Deficit != 2 || len(g) != 1 || g[0].Passed || g[0].Latency != 300*ms {
			t.Errorf("%v, %v", d, err)
		}
	})
}

// The request for nothing needs nobody: no DNS, no socket, no datagram.
func TestNothingAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		h := w.session(w.discovered)
		d, err := h.ask(t.Context(), w.key, weir.Request{})
		if s := h.Stats(); err != nil || !d.Granted() || s.Lookups != 0 || s.Sockets != 0 || s.Empty != 1 {
			t.Errorf("%v, %v, %+v", d, err, s)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.silence(0)
		w.servers[1].Do(func(e *responder.Exchange) { e.Header.KeyID = 3000 }) // a stranger
		h := w.session()
		_, err := h.ask(t.Context(), w.key, oneToken())
		var timeout *weir.TimeoutError
		if !errors.As(err, &timeout) || !errors.Is(err, weir.ErrTimeout) || timeout.Elapsed != 60*ms ||
			timeout.Seen.Servers != 2 || timeout.Seen.Datagrams[core.DatagramStranger] != 2 {
			t.Errorf("%v", err)
		}
		w.servers[0].Do(nil)
		h.grant() // the state of the failure goes on
	})
}

func TestNothingCanBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		h := w.session()
		w.net.SetLink(func(udp.Packet) udp.Fate { return udp.Fate{Err: syscall.EPERM} })
		start := time.Now()
		_, err := h.ask(t.Context(), w.key, oneToken())
		if !errors.Is(err, weir.ErrIO) || !errors.Is(err, syscall.EPERM) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if s := h.Stats(); s.SendFailures[core.SendFirst] != 2 {
			t.Errorf("%+v", s)
		}
		w.net.SetLink(nil)
		h.grant()
	})
}

// closedStack opens no sockets of IPv4 while it is shut.
type closedStack struct {
	udp.Stack
	shut   bool
	opened int
}

func (c *closedStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	if addr.Addr().Is4() && c.shut {
		c.opened++
		return nil, syscall.EMFILE
	}
	return c.Stack.Listen(addr, o)
}

func TestNoSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		stack := &closedStack{Stack: w.host, shut: true}
		w.stack = stack
		h := w.session()
		for range 3 {
			if _, err := h.ask(t.Context(), w.key, oneToken()); !errors.Is(err, weir.ErrIO) || !errors.Is(err, syscall.EMFILE) {
				t.Error(err)
			}
		}
		if stack.opened != 1 {
			t.Errorf("tried to open %d sockets within a second", stack.opened)
		}
		stack.shut = false
		time.Sleep(time.Second)
		h.grant()
	})
}

func TestBothFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.addServer(2000, netip.MustParseAddr("fd00::9"))
		h := w.session()
		if d := h.grant(); d.Server() != 1000 {
			t.Errorf("%v", d)
		}
		w.silence(0)
		if d := h.grant(); d.Server() != 2000 || d.Elapsed() != 20*ms {
			t.Errorf("%v", d)
		}
		if s := h.Stats(); s.Sockets != 2 || len(w.host.Ports()) != 2 {
			t.Errorf("%d sockets, ports %v", s.Sockets, w.host.Ports())
		}
	})
}

func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := w.session(func(cfg *Config) { cfg.Policy.Unit = 0 })
		short := apikey.DefaultQuotas()
		short.DedupTTL = 50 // ms, and the horizon is 60
		hasty, err := apikey.New(apikey.AuthNone, 7, short, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			key   apikey.Key
			r     weir.Request
			field string
		}{
			{w.key, weir.Request{Resources: []weir.Resource{checkout.Take(-1)}}, "Resources[0].Tokens"},
			{w.key, weir.Request{Resources: slices.Repeat([]weir.Resource{checkout.Take(1)}, 100)}, "Request"},
			{apikey.Key{}, oneToken(), "Key"},
			{hasty, oneToken(), "Policy"},
		} {
			_, err := h.ask(t.Context(), tt.key, tt.r)
			var field *weir.ConfigError
			if !errors.As(err, &field) || field.Field != tt.field {
				t.Errorf("%v, want one about %s", err, tt.field)
			}
		}
		h.grant()
		if n := w.servers[0].Log().Identities(); n != 1 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestContextEnds(t *testing.T) {
	for name, at := range map[string]time.Duration{"before": 0, "in round 0": 7 * ms, "in the final interval": 55 * ms} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.silence(0)
				h := w.session()
				ctx, cancel := context.WithCancel(t.Context())
				if at == 0 {
					cancel()
				}
				time.AfterFunc(at, cancel)
				start := time.Now()
				_, err := h.ask(ctx, w.key, oneToken())
				if !errors.Is(err, context.Canceled) || time.Since(start) != at {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				before := w.sent.Load()
				time.Sleep(time.Second)
				if n := w.sent.Load(); n != before {
					t.Errorf("%d datagrams were sent after the call", n-before)
				}
				ctx, cancel = context.WithTimeout(t.Context(), 5*ms)
				defer cancel()
				if _, err := h.ask(ctx, w.key, oneToken()); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				w.servers[0].Do(nil)
				h.grant() // at once: the canceled one is in flight no more
			})
		})
	}
}

// A late answer to an earlier request is counted by the call that reads it, and
// changes nothing.
func TestLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.servers[1].Do(func(e *responder.Exchange) {
			e.Delay, e.Silent = 40*ms, e.Repeat > 0
			e.Answer.Deficits[0] = 1 // what it says is another thing
		})
		h := w.session(func(cfg *Config) {
			cfg.Policy = policy.Default()
			cfg.Policy.CompletionDelivery = false
		})
		h.grant()
		time.Sleep(50 * ms)
		h.grant() // within the first's horizon
		if s := h.Stats(); s.Datagrams[core.DatagramLate] != 1 || s.Datagrams[core.DatagramCounted] != 2 {
			t.Errorf("%+v", s.Datagrams)
		}
		time.Sleep(time.Second)
		h.grant() // beyond the second's
		if s := h.Stats(); s.Datagrams[core.DatagramLate] != 1 || s.Datagrams[core.DatagramExpired] != 1 || s.Datagrams[core.DatagramUnknown] != 0 {
			t.Errorf("%+v", s.Datagrams)
		}
	})
}

// Nothing runs between calls: no refresh, no replay, no rebind, whatever falls due.
func TestNothingRunsBetweenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.servers[0].Do(func(e *responder.Exchange) { e.Header.Steering = 0 })
		w.zone.Set(domain, time.Second, w.members()...)
		h := w.session(w.discovered)
		h.grant()
		synctest.Wait()
		sent, asked, ports := w.sent.Load(), len(w.zone.Asked()), w.host.Ports()
		time.Sleep(24 * time.Hour)
		if w.sent.Load() != sent || len(w.zone.Asked()) != asked || !slices.Equal(w.host.Ports(), ports) {
			t.Errorf("%d datagrams, %d lookups, ports %v after %v", w.sent.Load()-sent, len(w.zone.Asked())-asked, w.host.Ports(), ports)
		}
	})
}

// Completion delivery is made within the call, whatever delay the policy has.
func TestDeliveryIsNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.silence(1)
		h := w.session(func(cfg *Config) {
			cfg.Policy = policy.Default()
			cfg.Policy.DeliveryDelay = 1
		})
		if d := h.grant(); d.Elapsed() != 0 || d.Server() != 1000 {
			t.Errorf("%v", d)
		}
		synctest.Wait()
		if got := w.servers[1].Log().Sources; len(got) != 2 {
			t.Errorf("the server that is silent got %d datagrams, want 2", len(got))
		}
	})
}

// slowConn takes its time to write.
type slowStack struct {
	udp.Stack
	stalls []time.Duration // of the writes, one after the other
}

type slowConn struct {
	udp.Conn
	stack *slowStack
}

func (s *slowStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := s.Stack.Listen(addr, o)
	return slowConn{c, s}, err
}

func (c slowConn) Write(ds []udp.Datagram) (int, error) {
	n, err := c.Conn.Write(ds)
	if len(c.stack.stalls) > 0 {
		time.Sleep(c.stack.stalls[0])
		c.stack.stalls = c.stack.stalls[1:]
	}
	return n, err
}

// An answer that is there goes before a deadline that has passed meanwhile.
func TestAnswersGoBeforeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.delay(0, 5*ms)
		w.stack = &slowStack{w.host, []time.Duration{25 * ms}}
		h := w.session()
		d := h.grant()
		if n := h.Stats().Sent[core.SendReplay]; n != 0 || d.Round() != 1 || d.Elapsed() != 25*ms {
			t.Errorf("%v after %d replays", d, n)
		}
	})
}

// Nothing is sent at or after the horizon, however long a write took.
func TestStall(t *testing.T) {
	for stall, sent := range map[time.Duration]int{60*ms - 1: 1, 60 * ms: 0, time.Hour: 0} {
		t.Run(fmt.Sprint(stall), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				w.silence(0, 1)
				w.stack = &slowStack{w.host, []time.Duration{stall}}
				h := w.session()
				if _, err := h.ask(t.Context(), w.key, oneToken()); !errors.Is(err, weir.ErrTimeout) {
					t.Error(err)
				}
				synctest.Wait()
				if n := len(w.servers[1].Log().Requests); n != sent {
					t.Errorf("the second server got %d datagrams, want %d", n, sent)
				}
			})
		})
	}
}

// Neither is it when it took so long to open the socket.
func TestStallBeforeTheFirstSend(t *testing.T) {
	for span, sent := range map[time.Duration]int{60*ms - 1: 1, 60 * ms: 0} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.silence(0)
			w.stack = busyStack{w.host, 0, span}
			h := w.session()
			if _, err := h.ask(t.Context(), w.key, oneToken()); !errors.Is(err, weir.ErrTimeout) {
				t.Error(err)
			}
			synctest.Wait()
			if n := len(w.servers[0].Log().Requests); n != sent {
				t.Errorf("%d datagrams after %v, want %d", n, span, sent)
			}
		})
	}
}

// brokenConn fails to read so often before it reads.
type brokenStack struct {
	udp.Stack
	failures int
}

type brokenConn struct {
	udp.Conn
	stack *brokenStack
}

func (s *brokenStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := s.Stack.Listen(addr, o)
	return brokenConn{c, s}, err
}

func (c brokenConn) Read(ds []udp.Datagram) (int, error) {
	if c.stack.failures > 0 {
		c.stack.failures--
		return 0, syscall.ECONNREFUSED
	}
	return c.Conn.Read(ds)
}

func TestReadErrorsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.delay(0, 1*ms)
		w.stack = &brokenStack{w.host, 17} // the last two of them after a pause each
		h := w.session()
		if d := h.grant(); d.Elapsed() != 10*ms {
			t.Errorf("%v", d)
		}
		if n := h.Stats().ReadErrors; n != 17 {
			t.Errorf("%d read errors", n)
		}
	})
}

func TestServersAreTheCallersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		h := w.session()
		if got := h.Servers(); len(got) != 0 {
			t.Errorf("known before a key is: %v", got)
		}
		h.grant()
		for range 2 {
			got := h.Servers()
			if len(got) != 2 || got[0].ID != 1000 || got[1].Addrs[0] != w.servers[1].Member().Addrs[0] {
				t.Fatalf("%v", got)
			}
			got[0], got[1].Addrs[0] = discovery.Server{}, netip.AddrPort{}
		}
	})
}
