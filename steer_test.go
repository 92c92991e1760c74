package weir

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	scripted "github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
)

// Every server advises another port in every answer, forever: no request is
// lost, a socket is replaced at most once a second, and one is open for each
// family.
func TestAdviceWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.addServer6()
		for _, s := range w.servers {
			s.Do(func(e *exchange) { e.Header.Steering, e.Delay = 0, 9*time.Millisecond })
		}
		c := w.client()
		const seconds = 6
		ctx, cancel := context.WithTimeout(context.Background(), seconds*time.Second)
		defer cancel()
		ended := make(chan int)
		for range 8 {
			go func() {
				n := 0
				for ctx.Err() == nil {
					if _, err := c.Acquire(context.Background(), oneToken()); err != nil {
						t.Error(err)
					}
					n++
				}
				ended <- n
			}()
		}
		total := 0
		for range 8 {
			total += <-ended
		}
		pass(100 * time.Millisecond) // what was asked has ended
		s := c.Stats()
		if total < 1000 || s.Rebinds < 2*(seconds-1) || s.Rebinds > 2*(seconds+1) {
			t.Errorf("%d requests, %d rebinds of 2 sockets in %d s", total, s.Rebinds, seconds)
		}
		// The two families may be at the same port.
		if n := len(w.host.Ports()); s.Sockets != 2 || n == 0 || n > 2 {
			t.Errorf("%d sockets are open: %v", s.Sockets, w.host.Ports())
		}
	})
}

func (w *world) addServer6() {
	addr := netip.MustParseAddr("fd00::9")
	w.servers = append(w.servers, scripted.Start(w.t, w.net.Host(addr), "[fd00::9]:29292", 9000, w.key))
}

// Under a load that never pauses the old socket is read until the last request
// that left from it has ended, and closed then.
func TestOldSocketDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		s := w.servers[0]
		c := w.client()
		acquire(t, c)
		first := w.host.Ports()
		slow := make(chan Decision)
		s.Do(func(e *exchange) { e.Delay, e.Silent = 50*time.Millisecond, e.Repeat > 0 })
		go func() { slow <- acquire(t, c) }()
		pass(time.Millisecond) // the slow request has left
		s.Do(func(e *exchange) { e.Header.Steering, e.Silent = 0, e.Repeat > 0 })
		acquire(t, c)
		synctest.Wait()
		if ports := w.host.Ports(); len(ports) != 2 || ports[1] != udp.FirstSteeringPort {
			t.Fatalf("open: %v; want the old socket, which has a request under way, and the next", ports)
		}
		s.Do(func(e *exchange) { e.Silent = e.Repeat > 0 })
		acquire(t, c)
		if from := s.Log().Peers(); from[len(from)-1].Port() != udp.FirstSteeringPort {
			t.Errorf("sent from %v", from)
		}
		if d := <-slow; d.Elapsed() != 50*time.Millisecond || d.Round() != 2 {
			t.Errorf("the slow one: %v", d)
		}
		synctest.Wait()
		if ports := w.host.Ports(); !slices.Equal(ports, []uint16{udp.FirstSteeringPort}) || first[0] == ports[0] {
			t.Errorf("open at the end: %v", ports)
		}
	})
}

// crowded is a host on which, while it is full, every steering port is taken.
type crowded struct {
	*udp.NetworkHost
	full atomic.Bool
}

func (h *crowded) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	if h.full.Load() && addr.Port() >= udp.FirstSteeringPort {
		addr = netip.AddrPortFrom(addr.Addr(), h.Ports()[0]) // one that is taken
	}
	return h.NetworkHost.Listen(addr, o)
}

// No port is free: the old socket stays, and advice is heard again after a
// second.
func TestNoPortToSteerTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(func(e *exchange) { e.Header.Steering = 0 })
		crowd := &crowded{NetworkHost: w.host}
		crowd.full.Store(true)
		w.stack = crowd
		c := w.client()
		for range 5 {
			acquire(t, c)
			pass(300 * time.Millisecond)
		}
		if s := c.Stats(); s.Rebinds != 0 || s.SteeringFailures != 2 || s.Sockets != 1 {
			t.Errorf("%d rebinds, %d failures, %d sockets", s.Rebinds, s.SteeringFailures, s.Sockets)
		}
		crowd.full.Store(false)
		pass(time.Second)
		acquire(t, c)
		synctest.Wait()
		if n := c.Stats().Rebinds; n != 1 {
			t.Errorf("%d rebinds once a port is free", n)
		}
	})
}

func TestPortsFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(func(e *exchange) { e.Header.Steering = 0 })
		occupied, err := w.host.Listen(netip.MustParseAddrPort("10.0.1.1:49153"), udp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer occupied.Close()
		c := w.client()
		for range 4 {
			acquire(t, c)
			pass(1100 * time.Millisecond)
		}
		var ports []uint16
		for _, from := range w.servers[0].Log().Peers()[1:] {
			ports = append(ports, from.Port())
		}
		if want := []uint16{49152, 49154, 49155}; !slices.Equal(ports, want) {
			t.Errorf("steered through %v, want %v", ports, want)
		}
	})
}

func TestCloseWhileSteering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(func(e *exchange) { e.Header.Steering = 0 })
		c := w.client()
		acquire(t, c)
		c.Close()
		if ports := w.host.Ports(); len(ports) != 0 {
			t.Errorf("open: %v", ports)
		}
	})
}
