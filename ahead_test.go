package weir

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
)

// starved is a host on which, while it is starved, no reader gets a processor.
type starved struct {
	*udp.NetworkHost
	now atomic.Bool
}

type starvedConn struct {
	udp.Conn
	host   *starved
	closed atomic.Bool
}

func (h *starved) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := h.NetworkHost.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	return &starvedConn{Conn: c, host: h}, nil
}

func (c *starvedConn) Read(ds []udp.Datagram) (int, error) {
	for !c.closed.Load() {
		if !c.host.now.Load() {
			if n := c.ReadAhead(ds); n > 0 {
				return n, nil
			}
		}
		pass(time.Millisecond)
	}
	return c.Conn.Read(ds)
}

func (c *starvedConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// The readers get no processor, and timers do: what lies in the sockets is handed
// in before they fire. It decides at the end of round 0, and nothing is replayed.
func TestTimersDoNotOutrunStarvedReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		for i, s := range w.servers {
			s.Do(func(e *exchange) { e.Delay = time.Duration(4+i) * time.Millisecond })
		}
		h := &starved{NetworkHost: w.host}
		w.stack = h
		c := w.client()
		h.now.Store(true)
		for range 3 {
			if d := acquire(t, c); d.Server() != 1000 || d.Elapsed() != 20*time.Millisecond {
				t.Errorf("%v", d)
			}
		}
		s := c.Stats()
		if s.Sent[core.SendReplay] != 0 || s.Datagrams[core.DatagramCounted] < 3 {
			t.Errorf("%d replays, received %v", s.Sent[core.SendReplay], s.Datagrams)
		}
		h.now.Store(false)
		pass(10 * time.Millisecond)
		if d := acquire(t, c); d.Elapsed() > 7*time.Millisecond {
			t.Errorf("with readers again: %v", d)
		}
	})
}

// endless is a host whose sockets always have something.
type endless struct{ *udp.NetworkHost }

type endlessConn struct{ udp.Conn }

func (h endless) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := h.NetworkHost.Listen(addr, o)
	return endlessConn{c}, err
}

func (endlessConn) ReadAhead(ds []udp.Datagram) int {
	ds[0].N = copy(ds[0].Buf, "noise")
	return 1
}

// A flood does not put timers off.
func TestTimersFireInAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.servers[0].Do(func(e *exchange) { e.Silent = e.Repeat == 0 })
		w.stack = endless{w.host}
		c := w.client()
		if d := acquire(t, c); d.Round() != 1 {
			t.Errorf("%v", d)
		}
		if n := c.Stats().Datagrams[core.DatagramMalformed]; n == 0 {
			t.Error("nothing was read ahead")
		}
	})
}
