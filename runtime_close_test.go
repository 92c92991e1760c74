package weir

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
)

// deafZone is a resolver that does not care about contexts.
type deafZone struct {
	zone
	takes time.Duration
}

func (z *deafZone) LookupSRV(context.Context, string) ([]discovery.SRV, time.Duration, error) {
	pass(z.takes)
	return z.zone.LookupSRV(context.Background(), "_ratelimitly._udp.c-7.rl.test")
}

// A lookup that does not hear that it is no longer wanted holds up Close, as
// whatever the client started has to have ended then, and nobody else.
func TestCloseWaitsForADeafResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		z := &deafZone{takes: 3 * time.Second}
		z.set(time.Minute, w.members()...)
		c := w.client(func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", z })
		start := time.Now()
		errs := make(chan error)
		go func() {
			_, err := c.Acquire(context.Background(), oneToken())
			errs <- err
		}()
		pass(time.Second)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			c.Close()
		}()
		if err := <-errs; !errors.Is(err, ErrClosed) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		<-closed
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("closed after %v; the lookup took 3 s", took)
		}
		expectClosed(t, c)
		if s := c.Stats(); s.MembershipChanges != 0 || s.Sockets != 0 {
			t.Errorf("what came too late counted: %+v", s)
		}
	})
}

// 500 calls wait in every state that a call can be in, some already twice sent.
func TestCloseEndsACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.silence(0)
		w.servers[1].Do(func(e *exchange) { e.Silent = e.Repeat == 0 && e.Header.UniqueID[0]%2 == 0 })
		c := w.client()
		errs := make(chan error)
		for i := range 500 {
			go func() {
				pass(time.Duration(i) * 100 * time.Microsecond) // for 50 ms
				_, err := c.Acquire(context.Background(), oneToken())
				errs <- err
			}()
		}
		closed := make(chan time.Time, 1)
		time.AfterFunc(50*time.Millisecond, func() {
			closed <- time.Now()
			c.Close()
		})
		ended := map[bool]int{}
		for range 500 {
			err := <-errs
			if err != nil && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			ended[err == nil]++
		}
		if at := <-closed; time.Since(at) != 0 || ended[true] == 0 || ended[false] < 100 {
			t.Errorf("%d decided, %d closed; the last %v after Close", ended[true], ended[false], time.Since(at))
		}
		expectClosed(t, c)
		if ports := w.host.Ports(); len(ports) != 0 {
			t.Errorf("sockets are open: %v", ports)
		}
	})
}

// slowSearch is a stack on which each steering port takes a while to be bound, or
// to be found taken.
type slowSearch struct {
	udp.Stack
	each time.Duration
	free bool
}

func (s *slowSearch) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	if addr.Port() < udp.FirstSteeringPort {
		return s.Stack.Listen(addr, o)
	}
	pass(s.each)
	first, err := s.Stack.Listen(addr, o)
	if err != nil || s.free {
		return first, err
	}
	defer first.Close()
	return s.Stack.Listen(addr, o) // a real "in use"
}

// The search for a port tries thousands of them. Close does not wait for the
// rest, and what is found too late is not kept.
func TestCloseDuringThePortSearch(t *testing.T) {
	for _, free := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.servers[0].Do(func(e *exchange) { e.Header.Steering = 0 })
			w.stack = &slowSearch{w.host, 10 * time.Millisecond, free}
			c := w.client()
			acquire(t, c)
			pass(5 * time.Millisecond)
			start := time.Now()
			c.Close()
			if took := time.Since(start); took != 5*time.Millisecond {
				t.Errorf("Close took %v", took)
			}
			expectClosed(t, c)
			if ports := w.host.Ports(); len(ports) != 0 {
				t.Errorf("sockets are open: %v", ports)
			}
		})
	}
}

// Close ends writes that hang: of a first send, of a replay, and of a completion
// delivery.
func TestCloseDuringAWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		clog   time.Duration // when, after the first sends
		silent bool          // the server that could decide
	}{
		"first send":          {0, false},
		"replay":              {10 * time.Millisecond, true},
		"completion delivery": {10 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := newClogged(t)
				c := w.client()
				w.silence(1)
				w.servers[0].Do(func(e *exchange) { e.Silent, e.Delay = tt.silent, 15*time.Millisecond })
				if tt.clog == 0 {
					h.clog()
				} else {
					time.AfterFunc(tt.clog, h.clog)
				}
				errs := make(chan error)
				go func() {
					_, err := c.Acquire(context.Background(), oneToken())
					errs <- err
				}()
				pass(30 * time.Millisecond)
				start := time.Now()
				c.Close()
				err := <-errs
				// A decision that was made before Close is one, even if its delivery hung.
				if err != nil && !errors.Is(err, ErrClosed) || time.Since(start) != 0 {
					t.Errorf("%v, %v after Close", err, time.Since(start))
				}
				expectClosed(t, c)
				if ports := w.host.Ports(); len(ports) != 0 {
					t.Errorf("sockets are open: %v", ports)
				}
			})
		})
	}
}

// Work may close its own client, and so may many at once, with requests, reports
// and steering under way.
func TestCloseFromInsideTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		for _, s := range w.servers {
			s.Do(func(e *exchange) { e.Header.Steering, e.Delay = 0, time.Millisecond })
		}
		c := w.client()
		var crowd sync.WaitGroup
		for range 50 {
			crowd.Go(func() {
				ran := false
				d, err := c.Do(context.Background(), Admission{Request: guarded()}, func(context.Context) error {
					ran = true
					return c.Close()
				})
				if ran != d.Granted() || ran && err != nil || !ran && !errors.Is(err, ErrClosed) {
					t.Errorf("ran: %v; %v, %v", ran, d, err)
				}
			})
		}
		crowd.Wait()
		expectClosed(t, c)
		if s := c.Stats(); s.LostReports == 0 || s.Sockets != 0 {
			t.Errorf("%d reports lost, %d sockets", s.LostReports, s.Sockets)
		}
	})
}
