package weir

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	scripted "github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

var (
	checkout  = Bucket("checkout", 100, time.Second)
	inventory = Tracker("inventory", TrackerOptions{TTL: 10 * time.Second, MaxSamples: 100, MinSamples: 5})
)

func oneToken() Request { return Request{Resources: []Resource{checkout.Take(1)}} }

// acquire asks and expects a grant.
func acquire(t *testing.T, c *Client) Decision {
	t.Helper()
	d, err := c.Acquire(context.Background(), oneToken())
	if err != nil || !d.Granted() {
		t.Fatalf("%v, %v", d, err)
	}
	return d
}

func TestAcquireGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		d := acquire(t, c)
		if d.Server() != 1000 || d.Round() != 0 || d.Elapsed() != 0 {
			t.Errorf("%v", d)
		}
		if r := d.Resources(); len(r) != 1 || r[0] != (ResourceResult{Resource: checkout.Take(1), ActualRate: 1}) {
			t.Errorf("%v", r)
		}
		synctest.Wait()
		for _, s := range w.servers {
			// The younger may not have answered in time to be spared a
			// completion delivery.
			if n, ids := received(s); ids != 1 || n > 2 || s.ID == 1000 && n != 1 {
				t.Errorf("server %v got %d datagrams of %d requests", s.ID, n, ids)
			}
		}
		if n := c.Stats().Sockets; n != 1 {
			t.Errorf("%d sockets for servers of one family", n)
		}
	})
}

func TestAcquireSendsWhatIsAsked(t *testing.T) {
	for _, layout := range []wire.Layout{0, wire.Layout1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			c := w.client(func(cfg *Config) { cfg.Layout = layout })
			w.servers[0].Do(func(e *exchange) {
				opts := TrackerOptions{TTL: 10 * time.Second, MaxSamples: 100, MinSamples: 5, BufferSize: 8}
				guard := wire.Guard{Tracker: Tracker("db", opts).ID(), TTL: 10000, MaxSamples: 100, MinSamples: 5, Threshold: 250}
				if layout == wire.Layout1 {
					guard.BufferSize = 8
					guard.Tracker = ident.TrackerLayout1("db", 10000, 100, 8, 5)
				}
				if got := e.Request.Guard(0); got != guard {
					t.Errorf("guard %+v, want %+v", got, guard)
				}
				want := wire.Resource{Bucket: checkout.ID(), Window: 1000, Rate: 100, Tokens: 3}
				if got := e.Request.Resource(0); got != want {
					t.Errorf("resource %+v, want %+v", got, want)
				}
				if got := string(e.Request.Label()); got != "api\x00" {
					t.Errorf("label %q", got)
				}
			})
			_, err := c.Acquire(context.Background(), Request{
				Resources: []Resource{checkout.Take(3)},
				Guards: []Guard{Tracker("db", TrackerOptions{
					TTL: 10 * time.Second, MaxSamples: 100, MinSamples: 5, BufferSize: 8,
				}).Below(250 * time.Millisecond)},
				Label: "api\x00",
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAcquireRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		w.servers[0].Do(func(e *exchange) {
			for i := range e.Answer.Deficits {
				e.Answer.Rates[i], e.Answer.Deficits[i] = 100, uint16(i)
			}
			for i := range e.Answer.Latencies {
				e.Answer.Latencies[i] = uint32(100 * i)
			}
		})
		// Of each more than a decision has room for in place.
		r := Request{Label: "x"}
		for range 6 {
			r.Resources = append(r.Resources, checkout.Take(9))
		}
		for range 3 {
			r.Guards = append(r.Guards, inventory.Below(150*time.Millisecond))
		}
		d, err := c.Acquire(context.Background(), r)
		if err != nil || d.Granted() || d.Server() != 1000 {
			t.Fatalf("%v, %v", d, err)
		}
		for i, res := range d.Resources() {
			if res.Resource != r.Resources[i] || int(res.Deficit) != i || res.ActualRate != 100 || res.Covered() != (i == 0) || res.NoRoom() {
				t.Errorf("resource %d: %+v", i, res)
			}
		}
		for i, g := range d.Guards() {
			if g.Guard != r.Guards[i] || g.Latency != time.Duration(i)*100*time.Millisecond || g.Passed != (i < 2) {
				t.Errorf("guard %d: %+v", i, g)
			}
		}
		text := d.String()
		for _, want := range []string{"rejected by server 1000", `guard "inventory": 200ms is not below 150ms`, `bucket "checkout": 5 of 9 tokens missing (100 of 100 in 1s)`} {
			if !strings.Contains(text, want) {
				t.Errorf("%q lacks %q", text, want)
			}
		}
	})
}

func TestAcquireToldOfNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		w.servers[0].Do(func(e *exchange) { e.Answer.Rates[0], e.Answer.Deficits[0] = 0, 1 })
		d, err := c.Acquire(context.Background(), oneToken())
		if err != nil || d.Granted() || !d.Resources()[0].NoRoom() || !strings.Contains(d.String(), "no room") {
			t.Fatalf("%v, %v", d, err)
		}
	})
}

func TestAcquireOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		c := w.client(func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", &zone{err: errors.New("no DNS")} })
		d, err := c.Acquire(context.Background(), Request{Label: "x"})
		if err != nil || !d.Granted() || d.Server() != 0 {
			t.Fatalf("%v, %v", d, err)
		}
	})
}

func TestAcquireTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		for _, s := range w.servers {
			s.Do(func(e *exchange) { e.Silent = true })
		}
		start := time.Now()
		_, err := c.Acquire(context.Background(), oneToken())
		var timeout *TimeoutError
		if !errors.Is(err, ErrTimeout) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatal(err)
		}
		if timeout.Elapsed != 60*time.Millisecond || time.Since(start) != 60*time.Millisecond {
			t.Errorf("after %v, says %v", time.Since(start), timeout.Elapsed)
		}
		for _, want := range []string{"2 servers at 2 addresses for 60ms", "received nothing", "down", "key", "clock", "UDP"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
		synctest.Wait()
		for _, s := range w.servers {
			if n, ids := received(s); n != 2 || ids != 1 {
				t.Errorf("server %v got %d datagrams of %d requests; want a send and a replay", s.ID, n, ids)
			}
		}
	})
}

// What a client saw is in the timeout's text.
func TestTimeoutTellsWhatCameIn(t *testing.T) {
	tests := map[string]struct {
		script func(*testing.T, *exchange)
		seen   core.DatagramVerdict
		text   string
	}{
		"another key": {func(t *testing.T, e *exchange) { e.Raw = foreign(t, e, testKey(t, apikey.AuthAES)) }, core.DatagramForged, "not authentic"},
		"another mode": {
			func(t *testing.T, e *exchange) { e.Raw = foreign(t, e, testKey(t, apikey.AuthNone)) }, core.DatagramMode,
			"another authentication mode",
		},
		"noise":     {func(_ *testing.T, e *exchange) { e.Raw = []byte("HTTP/1.1 400 Bad Request") }, core.DatagramMalformed, "malformed"},
		"too long":  {func(_ *testing.T, e *exchange) { e.Raw = make([]byte, wire.MaxDatagram+1) }, core.DatagramMalformed, "malformed"},
		"stranger":  {func(_ *testing.T, e *exchange) { e.Header.KeyID = 4711 }, core.DatagramStranger, "not asked"},
		"unrelated": {func(_ *testing.T, e *exchange) { e.Header.UniqueID[3]++ }, core.DatagramUnknown, "no question of ours"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				c := w.client()
				w.servers[0].Do(func(e *exchange) { tt.script(t, e) })
				_, err := c.Acquire(context.Background(), oneToken())
				var timeout *TimeoutError
				if !errors.As(err, &timeout) {
					t.Fatal(err)
				}
				if n := timeout.Seen.Datagrams[tt.seen]; n != 2 {
					t.Errorf("%d %v datagrams in %v", n, tt.seen, timeout.Seen)
				}
				if !strings.Contains(err.Error(), "received 2 "+tt.text) && !strings.Contains(err.Error(), tt.text) {
					t.Errorf("%q lacks %q", err, tt.text)
				}
			})
		})
	}
}

// A datagram of more than 1200 bytes is no answer, even if what it begins with
// would be one.
func TestAnswerThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.key = testKey(t, apikey.AuthCookie)
		s := w.addServer(1)
		c := w.client()
		for _, tt := range []struct {
			length int
			ok     bool
		}{{wire.MaxDatagram, true}, {wire.MaxDatagram + 1, false}} {
			s.Do(func(e *exchange) {
				e.Raw = foreign(t, e, w.key)
				e.Raw = append(e.Raw, make([]byte, tt.length-len(e.Raw))...) // ignored behind the PDU
			})
			d, err := c.Acquire(context.Background(), oneToken())
			if d.Granted() != tt.ok || (err == nil) != tt.ok {
				t.Errorf("%d bytes: %v, %v", tt.length, d, err)
			}
		}
	})
}

// foreign answers e under another key.
func foreign(t *testing.T, e *exchange, key apikey.Key) []byte {
	credential, err := wire.NewCredential(key)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := wire.NewSealer(strings.NewReader("12345678"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := credential.AppendResponse(nil, sealer, &e.Header, e.Request, &e.Answer)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The oldest server is dead: the second one's answer is taken when its time has
// come, and the oldest is told.
func TestAcquireFailsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		w.servers[0].Do(func(e *exchange) { e.Silent = true })
		for range 3 {
			d := acquire(t, c)
			if d.Server() != 2000 || d.Elapsed() != 20*time.Millisecond {
				t.Errorf("%v", d)
			}
		}
		synctest.Wait()
		if n, ids := received(w.servers[0]); n != 6 || ids != 3 {
			t.Errorf("the dead server got %d datagrams of %d requests; want a send and a completion delivery each", n, ids)
		}
		if n, ids := received(w.servers[1]); n != 3 || ids != 3 {
			t.Errorf("the second server got %d datagrams of %d requests", n, ids)
		}
	})
}

// unhurried is a host on which every write takes a millisecond.
type unhurried struct{ *udp.NetworkHost }

type unhurriedConn struct{ udp.Conn }

func (h unhurried) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := h.NetworkHost.Listen(addr, o)
	return unhurriedConn{c}, err
}

func (c unhurriedConn) Write(ds []udp.Datagram) (int, error) {
	pass(time.Millisecond)
	return c.Conn.Write(ds)
}

// A decision is handed out after its completion delivery was written.
func TestCompletionDeliveryPrecedesTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.silence(0)
		w.stack = unhurried{w.host}
		c := w.client()
		start := time.Now()
		d := acquire(t, c)
		if took := time.Since(start); d.Elapsed() != 20*time.Millisecond || took != 21*time.Millisecond {
			t.Errorf("decided after %v, returned after %v", d.Elapsed(), took)
		}
		synctest.Wait()
		if n, _ := received(w.servers[0]); n != 2 {
			t.Errorf("the server got %d datagrams", n)
		}
	})
}

// With a delay the decision waits for no write, and who answers meanwhile is not sent
// to again.
func TestDeliveryDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.silence(1)
		w.servers[2].Do(func(e *exchange) { e.Delay = 15 * time.Millisecond })
		w.stack = unhurried{w.host}
		c := w.client(func(cfg *Config) {
			cfg.Policy = policy.Default()
			cfg.Policy.DeliveryDelay = 1
		})
		start := time.Now()
		d := acquire(t, c)
		took := time.Since(start)
		if d.Server() != 1000 || took != time.Millisecond {
			t.Errorf("%v, returned after %v", d, took)
		}
		for _, wait := range []struct {
			until time.Duration
			got   [3]int
		}{
			{20*time.Millisecond - 1, [3]int{1, 1, 1}},
			{22 * time.Millisecond, [3]int{1, 2, 1}},
			{time.Second, [3]int{1, 2, 1}},
		} {
			time.Sleep(wait.until - time.Since(start))
			synctest.Wait()
			for i, want := range wait.got {
				if n, ids := received(w.servers[i]); n != want || ids != 1 {
					t.Errorf("after %v server %d has got %d datagrams of %d requests, want %d", wait.until, i, n, ids, want)
				}
			}
		}
	})
}

// What is closed delivers nothing any more.
func TestDeliveryDelayEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.silence(1)
		c := w.client(func(cfg *Config) {
			cfg.Policy = policy.Default()
			cfg.Policy.DeliveryDelay = 1
		})
		acquire(t, c)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n, _ := received(w.servers[1]); n != 1 {
			t.Errorf("the server got %d datagrams", n)
		}
	})
}

func TestAcquireWhenNothingCanBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		acquire(t, c)
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			if p.To.Port() == 29292 {
				return udp.Fate{Err: syscall.EPERM}
			}
			return udp.Fate{}
		})
		start := time.Now()
		_, err := c.Acquire(context.Background(), oneToken())
		if !errors.Is(err, ErrIO) || !errors.Is(err, syscall.EPERM) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			if p.To.Addr() == netip.MustParseAddr("10.0.0.2") {
				return udp.Fate{Err: syscall.ENOBUFS}
			}
			return udp.Fate{}
		})
		if d := acquire(t, c); d.Server() != 1000 {
			t.Errorf("one of two sends failed: %v", d)
		}
	})
}

// A family without a socket costs its servers, nothing else, and is tried again.
func TestAcquireWithoutAFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		six := scripted.Start(t, w.net.Host(netip.MustParseAddr("fd00::9")), "[fd00::9]:29292", 500, w.key)
		w.servers = append(w.servers, six)
		w.host = w.net.Host(netip.MustParseAddr("10.0.1.2"))
		c := w.client()
		if d := acquire(t, c); d.Server() != 1000 {
			t.Errorf("%v", d)
		}
		alone := w.client(func(cfg *Config) { cfg.Servers = append(cfg.Servers, six.Member()) })
		if _, err := alone.Acquire(context.Background(), oneToken()); !errors.Is(err, ErrIO) || !errors.Is(err, udp.ErrNotLocal) {
			t.Error(err)
		}
	})
}

func TestAcquireOverBothFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		six := scripted.Start(t, w.net.Host(netip.MustParseAddr("fd00::9")), "[fd00::9]:29292", 500, w.key)
		w.servers = append(w.servers, six)
		c := w.client()
		if d := acquire(t, c); d.Server() != 500 {
			t.Errorf("%v", d)
		}
		if n := c.Stats().Sockets; n != 2 {
			t.Errorf("%d sockets for two families", n)
		}
	})
}

func TestTooManyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client(func(cfg *Config) { cfg.MaxInFlight = 3 })
		w.servers[0].Do(func(e *exchange) { e.Delay = 10 * time.Millisecond })
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := c.Acquire(context.Background(), oneToken())
				errs <- err
			}()
		}
		if err := <-errs; !errors.Is(err, ErrTooManyInFlight) {
			t.Errorf("the first to return: %v", err)
		}
		for range 3 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWallClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		clocks := map[int64]func() core.Time{0: w.clock, 3_600_000: w.stepped(3_600_000), -3_600_000: w.stepped(-3_600_000)}
		var step atomic.Int64
		w.clock = func() core.Time { return clocks[step.Load()]() }
		c := w.client()
		w.servers[0].Do(func(e *exchange) { e.Silent = true })
		for _, ms := range []int64{0, 3_600_000, 0, -3_600_000, 3_600_000} {
			time.AfterFunc(10*time.Millisecond, func() { step.Store(ms) }) // while a request waits
			if d := acquire(t, c); d.Elapsed() != 20*time.Millisecond {
				t.Errorf("wall clock off by %d ms: %v", ms, d)
			}
		}
	})
}
