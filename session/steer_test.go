package session

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
)

func change(e *responder.Exchange) { e.Header.Steering = 0 }

// ports returns the ports that a server was asked from, in order.
func ports(r *responder.Responder) []uint16 {
	var ports []uint16
	for _, from := range r.Log().Sources {
		ports = append(ports, from.Port())
	}
	return ports
}

// Advice is followed at the next send: the next free port of the range, and one
// socket is open in the end.
func TestSteering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(change)
		occupied, err := w.host.Listen(netip.MustParseAddrPort("10.0.1.1:49153"), udp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer occupied.Close()
		h := w.session()
		for range 6 { // a socket is deaf for the first second, and so to its first answer
			h.grant()
			time.Sleep(1100 * ms)
		}
		if got := ports(w.servers[0]); !slices.Equal(got[1:], []uint16{49152, 49152, 49154, 49154, 49155}) || got[0] >= udp.FirstSteeringPort {
			t.Errorf("asked from %v", got)
		}
		if s := h.Stats(); s.Rebinds != 3 || s.Sockets != 1 || len(w.host.Ports()) != 2 {
			t.Errorf("%+v; open: %v", s, w.host.Ports())
		}
	})
}

// Advice without end, from both families and under keys that change with every
// call, replaces a socket at most once a second.
func TestSteeringOnceASecond(t *testing.T) {
	for _, keys := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.addServer(2000, netip.MustParseAddr("fd00::9"))
			for _, s := range w.servers {
				s.Do(func(e *responder.Exchange) { e.Header.Steering, e.Delay = 0, ms })
			}
			h := w.session()
			start := time.Now()
			for n := 0; time.Since(start) < 5*time.Second; n++ {
				if n%keys > 0 { // another tenant's, who is not answered but by the stranger
					if _, err := h.ask(t.Context(), newKey(t, 8), oneToken()); err == nil {
						t.Error("an answer to another key counted")
					}
				}
				h.grant()
				time.Sleep(time.Duration(100*keys) * ms)
			}
			s := h.Stats()
			if s.Rebinds > 2*6 || keys == 1 && s.Rebinds < 2*4 || s.Sockets != 2 {
				t.Errorf("%d keys: %d rebinds of 2 sockets in 5 s, %d open", keys, s.Rebinds, s.Sockets)
			}
		})
	}
}

// Advice in a late answer that a request reads is followed by its replay; the old
// socket is read until the request has ended.
func TestSteeringBetweenSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		h := w.session()
		w.servers[1].Do(func(e *responder.Exchange) { e.Header.Steering, e.Delay, e.Silent = 0, 30*ms, e.Repeat > 0 })
		h.grant()
		time.Sleep(20 * ms)
		// The answer with advice comes at 10 ms, the old port's at 40 ms.
		w.silence(1)
		w.servers[0].Do(func(e *responder.Exchange) { e.Delay, e.Silent = 40*ms, e.Repeat > 0 })
		if d := h.grant(); d.Elapsed() != 40*ms {
			t.Errorf("%v", d)
		}
		got := ports(w.servers[0]) // first request; first, replay of the second
		if len(got) != 3 || got[0] != got[1] || got[2] != udp.FirstSteeringPort {
			t.Errorf("asked from %v", got)
		}
		if open := w.host.Ports(); !slices.Equal(open, []uint16{udp.FirstSteeringPort}) {
			t.Errorf("open: %v", open)
		}
	})
}

// A completion delivery, which a decision waits for, leaves by the old port.
func TestCompletionDeliveryDoesNotSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.silence(0)
		w.servers[1].Do(change)
		h := w.session()
		h.grant() // by the younger one, at the preference deadline
		synctest.Wait()
		if got := ports(w.servers[0]); len(got) != 2 || got[0] != got[1] || h.Stats().Rebinds != 0 {
			t.Errorf("asked from %v", got)
		}
		h.grant()
		synctest.Wait()
		if got := ports(w.servers[0]); len(got) != 4 || got[2] != udp.FirstSteeringPort {
			t.Errorf("asked from %v", got)
		}
	})
}

// busyStack takes its time to bind ports from one on.
type busyStack struct {
	udp.Stack
	from uint16
	span time.Duration
}

func (b busyStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	if addr.Port() >= b.from {
		time.Sleep(b.span)
	}
	return b.Stack.Listen(addr, o)
}

// The search for a port is over before the request begins.
func TestSteeringCostsTheRequestNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(change)
		w.stack = busyStack{w.host, udp.FirstSteeringPort, 15 * ms}
		h := w.session()
		h.grant()
		if d := h.grant(); d.Elapsed() != 0 || h.Stats().Rebinds != 1 {
			t.Errorf("%v after %d rebinds", d, h.Stats().Rebinds)
		}
	})
}

// fullStack has no free port in the steering range while it is full.
type fullStack struct {
	udp.Stack
	full  bool
	taken netip.AddrPort
}

func (f *fullStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	if f.full && addr.Port() >= udp.FirstSteeringPort {
		addr = f.taken
	}
	return f.Stack.Listen(addr, o)
}

func TestNoPortToSteerTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(change)
		occupied, err := w.host.Listen(netip.MustParseAddrPort("0.0.0.0:7"), udp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer occupied.Close()
		stack := &fullStack{w.host, true, occupied.LocalAddr()}
		w.stack = stack
		h := w.session()
		for range 5 { // at 0, 300, …, 1200 ms
			h.grant()
			time.Sleep(300 * ms)
		}
		if s := h.Stats(); s.Rebinds != 0 || s.SteeringFailures != 1 || s.Sockets != 1 {
			t.Errorf("%+v", s)
		}
		h.grant() // hears advice again
		h.grant() // and follows it in vain
		stack.full = false
		time.Sleep(1100 * ms)
		h.grant()
		h.grant()
		if s := h.Stats(); s.Rebinds != 1 || s.SteeringFailures != 2 {
			t.Errorf("%+v", s)
		}
	})
}
