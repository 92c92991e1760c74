package weir

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	scripted "github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
)

// What a reader has goes before the timer: an answer that waits for its turn
// while a round ends spares the replay.
func TestDatagramsGoBeforeTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(func(e *exchange) { e.Delay = 22 * time.Millisecond })
		c := w.client()
		time.AfterFunc(10*time.Millisecond, func() { // a reader has something
			group := c.arrivals.arrive()
			time.AfterFunc(20*time.Millisecond, func() { c.receive(nil, nil, group) }) // and has handed it in
		})
		d := acquire(t, c)
		if n := c.Stats().Sent[core.SendReplay]; n != 0 || d.Round() != 1 || d.Elapsed() != 22*time.Millisecond {
			t.Errorf("%v, after %d replays", d, n)
		}
		pass(20 * time.Millisecond)
		w.silence(0)
		if _, err := c.Acquire(context.Background(), oneToken()); !errors.Is(err, ErrTimeout) {
			t.Errorf("the timer after that: %v", err)
		}
	})
}

// Two readers under a flood: whenever one has handed in what it had, the other
// has something. Timers fire all the same.
func TestFloodDoesNotStopTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.silence(0)
		c := w.client()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		flooded := make(chan struct{})
		go func() {
			defer close(flooded)
			before := c.arrivals.arrive()
			for ctx.Err() == nil {
				pass(time.Millisecond)
				now := c.arrivals.arrive()
				c.receive(nil, nil, before)
				before = now
			}
			c.receive(nil, nil, before)
		}()
		start := time.Now()
		_, err := c.Acquire(ctx, oneToken())
		if took := time.Since(start); !errors.Is(err, ErrTimeout) || took > 62*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		if n := c.Stats().Sent[core.SendReplay]; n != 1 {
			t.Errorf("%d replays", n)
		}
		cancel()
		<-flooded
	})
}

// A caller that waits long for the client's lock has the time of before: the
// timer fires by the clock all the same.
func TestTimerIsArmedByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.silence(0)
		c := w.client()
		k := c.getCall()
		r := oneToken()
		if err := k.encode(r.Resources, nil, c.layout); err != nil {
			t.Fatal(err)
		}
		ob, now, start := c.getOutbox(), c.clock(), time.Now()
		pass(15 * time.Millisecond) // the lock is waited for
		c.mu.Lock()
		id, err := c.core.Submit(now, &core.Request{Resources: k.resources})
		if err != nil {
			t.Fatal(err)
		}
		k.id, c.calls[id] = id, k
		c.settle(now, ob)
		c.mu.Unlock()
		c.flush(ob)
		pass(5 * time.Millisecond) // the end of round 0
		synctest.Wait()
		if n := c.Stats().Sent[core.SendReplay]; n != 1 {
			t.Errorf("%d replays %v after the submit", n, time.Since(start))
		}
		<-k.done
		k.releaseSockets()
	})
}

// stalling is a host on which a process stops after the first write to a socket.
type stalling struct {
	*udp.NetworkHost
	span time.Duration
}

type stallingConn struct {
	udp.Conn
	once sync.Once
	span time.Duration
}

func (h stalling) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := h.NetworkHost.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	return &stallingConn{Conn: c, span: h.span}, nil
}

func (c *stallingConn) Write(ds []udp.Datagram) (int, error) {
	n, err := c.Conn.Write(ds)
	c.once.Do(func() { pass(c.span) })
	return n, err
}

// Nothing is sent at or after the horizon, however long the goroutine that is to
// write sleeps: the core had given the datagrams out long before.
func TestStallBeyondTheHorizon(t *testing.T) {
	for name, tt := range map[string]struct {
		stall time.Duration
		sent  int // to the second server
	}{
		"just before": {60*time.Millisecond - 1, 1},
		"at it":       {60 * time.Millisecond, 0},
		"long after":  {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.addServer6()
				w.silence(0, 1)
				w.stack = stalling{w.host, tt.stall}
				c := w.client(func(cfg *Config) {
					cfg.Policy = policy.Default()
					cfg.Policy.Replays, cfg.Policy.Gap, cfg.Policy.Preference = 0, policy.Fixed(2), policy.Fixed(0)
				})
				if _, err := c.Acquire(context.Background(), oneToken()); !errors.Is(err, ErrTimeout) {
					t.Error(err)
				}
				synctest.Wait()
				if n, _ := received(w.servers[1]); n != tt.sent {
					t.Errorf("%d datagrams to the second server, want %d", n, tt.sent)
				}
				if s := c.Stats(); s.Sent[core.SendFirst] != 2 {
					t.Errorf("the core gave out %d", s.Sent[core.SendFirst])
				}
			})
		})
	}
}

// stubborn is a host whose sockets fail to read: every other time, or always.
type stubborn struct {
	*udp.NetworkHost
	always bool
}

type stubbornConn struct {
	udp.Conn
	always bool
	closed atomic.Bool
	reads  atomic.Int64
}

func (h stubborn) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := h.NetworkHost.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	return &stubbornConn{Conn: c, always: h.always}, nil
}

func (c *stubbornConn) Read(ds []udp.Datagram) (int, error) {
	if n := c.reads.Add(1); !c.closed.Load() && (c.always || n%2 == 1) {
		return 0, syscall.ECONNREFUSED
	}
	return c.Conn.Read(ds)
}

func (c *stubbornConn) ReadAhead(ds []udp.Datagram) int {
	if c.always {
		return 0
	}
	return c.Conn.ReadAhead(ds)
}

func (c *stubbornConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func TestReadersOutliveErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.stack = stubborn{w.host, false}
		c := w.client()
		for range 10 {
			acquire(t, c)
			pass(50 * time.Millisecond)
		}
		if n := c.Stats().ReadErrors; n < 10 {
			t.Errorf("%d errors counted", n)
		}
	})
}

// A socket that does nothing but fail is tried again and again, at leisure.
func TestReaderOfABrokenSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.stack = stubborn{w.host, true}
		c := w.client()
		if _, err := c.Acquire(context.Background(), oneToken()); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		before := c.Stats().ReadErrors
		pass(time.Second)
		if n := c.Stats().ReadErrors - before; n < 100 || n > 300 {
			t.Errorf("%d errors in a second", n)
		}
	})
}

// Timers do not fire for nobody: with nothing to do the client sleeps until its
// last identity is forgotten, and then for good.
func TestIdleClientSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var readings atomic.Int64
		clock := w.clock
		w.clock = func() core.Time {
			readings.Add(1)
			return clock()
		}
		c := w.client()
		acquire(t, c)
		pass(time.Second)
		before := readings.Load()
		pass(24 * time.Hour)
		if n := readings.Load() - before; n != 0 {
			t.Errorf("the clock was read %d times in an idle day", n)
		}
	})
}

// Many goroutines on one client over real sockets, doing everything at once,
// while every answer asks for another port; then it is closed under them.
func TestManyGoroutinesAtOnce(t *testing.T) {
	key := patientKey(t, apikey.AuthAES)
	older := scripted.Start(t, udp.Host(), "127.0.0.1:0", 1000, key)
	younger := scripted.Start(t, udp.Host(), "127.0.0.1:0", 2000, key)
	for _, s := range []*responder{older, younger} {
		s.Do(func(e *exchange) { e.Header.Steering = 0 })
	}
	p := patient()
	p.Preference, p.FinalPreference = policy.Fixed(0), 0
	c, err := New(Config{Key: key, Policy: p, Servers: memberList(older, younger)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var callers sync.WaitGroup
	var granted, given atomic.Int64
	for i := range 100 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for n := 0; ; n++ {
				ctx, cancel := context.WithCancel(context.Background())
				if random.IntN(4) == 0 {
					time.AfterFunc(time.Duration(random.IntN(200))*time.Microsecond, cancel)
				}
				_, err := c.Do(ctx, Admission{Request: guarded()}, func(context.Context) error { return nil })
				cancel()
				switch {
				case err == nil:
					granted.Add(1)
				case errors.Is(err, context.Canceled):
					given.Add(1)
				case errors.Is(err, ErrClosed):
					return
				default:
					t.Errorf("caller %d: %v", i, err)
					return
				}
				if n == 30 && i == 0 {
					c.Stats()
					c.Close()
				}
			}
		})
	}
	callers.Wait()
	s := c.Stats()
	if s.Outcomes[core.Granted] < uint64(granted.Load()) || s.InFlight != 0 || s.Sockets != 0 || granted.Load() == 0 {
		t.Errorf("%d granted, %d given up; %+v", granted.Load(), given.Load(), s)
	}
}
