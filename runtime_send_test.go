package weir

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
)

// clogged is a host whose writes to one address wait, once the host is clogged,
// until somebody opens it or closes the socket.
type clogged struct {
	*udp.NetworkHost
	to netip.Addr

	mu      sync.Mutex
	gate    chan struct{} // nil while open
	options []udp.Options // of each socket
	writes  []int         // datagrams of each Write
	fails   error         // of all of them
}

type cloggedConn struct {
	udp.Conn
	host   *clogged
	closed chan struct{}
	once   sync.Once
}

func (h *clogged) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	c, err := h.NetworkHost.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.options = append(h.options, o)
	return &cloggedConn{Conn: c, host: h, closed: make(chan struct{})}, nil
}

// clog makes writes wait from now on.
func (h *clogged) clog() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate = make(chan struct{})
}

func (h *clogged) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.gate)
	h.gate = nil
}

func (c *cloggedConn) Write(ds []udp.Datagram) (int, error) {
	c.host.mu.Lock()
	gate, fails := c.host.gate, c.host.fails
	c.host.writes = append(c.host.writes, len(ds))
	c.host.mu.Unlock()
	for i := range ds {
		if gate != nil && ds[i].Peer.Addr() == c.host.to {
			select {
			case <-gate:
			case <-c.closed:
			}
		}
		if fails != nil {
			return i, fails
		}
		if _, err := c.Conn.Write(ds[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(ds), nil
}

func (c *cloggedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// newClogged is a world of an IPv4 and an IPv6 server, with a client on a host
// that clogs to the IPv6 one.
func newClogged(t *testing.T) (*world, *clogged) {
	w := newWorld(t, 1)
	w.addServer6()
	h := &clogged{NetworkHost: w.host, to: netip.MustParseAddr("fd00::9")}
	w.stack = h
	return w, h
}

// A context that ends while a datagram is being written: the call returns when
// that is done, and holds on to nothing.
func TestContextEndsDuringASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		w.silence(0, 1)
		h.clog()
		time.AfterFunc(15*time.Millisecond, h.open)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.Acquire(ctx, oneToken())
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 15*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		if s := c.Stats(); s.InFlight != 0 || s.Canceled != 1 {
			t.Errorf("%d in flight, %d canceled", s.InFlight, s.Canceled)
		}
		for id, s := range c.sockets {
			if n := s.uses.Load(); n != 1 {
				t.Errorf("socket %v has %d uses", id, n)
			}
		}
	})
}

// An answer that comes while the same call is still sending to another server is
// not lost.
func TestAnswerDuringASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newClogged(t)
		c := w.client()
		h.clog()
		time.AfterFunc(30*time.Millisecond, h.open)
		d := acquire(t, c)
		if d.Server() != 1000 || d.Elapsed() != 0 {
			t.Errorf("%v", d)
		}
	})
}

// Reports and other calls wait for no send but their own: not for one that hangs,
// nor for a lookup, nor for the search for a port.
func TestReportWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, z := discoverable(t, 1, 5*time.Second)
		h := &clogged{NetworkHost: w.host, to: w.servers[0].Member().Addrs[0].Addr()}
		w.stack = &slowSearch{Stack: h, each: time.Millisecond}
		w.servers[0].Do(func(e *exchange) { e.Header.Steering = 0 })
		c := w.discovered(z)
		acquire(t, c) // the search begins
		z.block()
		h.clog()
		hanging := make(chan error)
		go func() {
			_, err := c.Acquire(context.Background(), oneToken())
			hanging <- err
		}()
		pass(time.Millisecond)
		h.mu.Lock()
		h.gate = nil // later writes go through, the one that hangs does not
		h.mu.Unlock()
		pass(10 * time.Second) // a lookup has begun
		start := time.Now()
		if err := c.Report(inventory.Took(time.Millisecond)); err != nil {
			t.Error(err)
		}
		c.Stats()
		c.Servers()
		if took := time.Since(start); took != 0 {
			t.Errorf("held up for %v", took)
		}
		if s := c.Stats(); s.Lookups < 3 || s.InFlight != 0 {
			t.Errorf("%d lookups, %d in flight", s.Lookups, s.InFlight)
		}
		c.Close()
		if err := <-hanging; err != nil {
			t.Errorf("the replay was answered, and the call that hung says %v", err)
		}
	})
}

// A report's time is that of its writes.
func TestReportTakesAsLongAsItsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.stack = unhurried{w.host}
		c := w.client()
		obs := make([]Observation, 100)
		for i := range obs {
			obs[i] = inventory.Took(time.Millisecond)
		}
		start := time.Now()
		if err := c.Report(obs...); err != nil {
			t.Fatal(err)
		}
		// One call writes all datagrams of a socket.
		if took := time.Since(start); took != time.Millisecond {
			t.Errorf("%d datagrams took %v", c.Stats().Sent[core.SendReport], took)
		}
	})
}

func TestSocketBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, configure := range map[int]func(*Config){
			1 << 20: func(*Config) {},
			12345:   func(cfg *Config) { cfg.SocketBuffer = 12345 },
		} {
			w, h := newClogged(t)
			w.servers[0].Do(func(e *exchange) { e.Header.Steering = 0 })
			c := w.client(configure)
			acquire(t, c)
			synctest.Wait()
			if len(h.options) != 3 { // two families, and one replaced
				t.Errorf("%d sockets", len(h.options))
			}
			for _, o := range h.options {
				if o.ReadBuffer != want || o.WriteBuffer != want {
					t.Errorf("a socket was opened with %+v", o)
				}
			}
		}
	})
}
