package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// Any worker serves any tenant: clients whose flows the system spread over the workers
// meet in one bucket.
func TestWorkersShareState(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing spreads flows here")
	}
	key := newKey(t, apikey.AuthAES, 7)
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{key}}}, Workers: 3})
	if !strings.Contains(s.log.String(), " workers=3 ") {
		t.Errorf("the log does not tell how many workers there are:\n%s", s.log)
	}
	if addrs := s.Addrs(); len(addrs) != 1 || len(s.listeners[0].workers) != 3 {
		t.Fatalf("%d workers at %v", len(s.listeners[0].workers), addrs)
	}
	const clients = 60 // none of 3 workers gets any of them once in 10^10
	for i := range clients {
		c := dial(t, key, s.Addrs()[0])
		c.header.UniqueID[0] = byte(i + 1)
		r := checkout(1)
		r.Resources[0].Window, r.Resources[0].Rate = 600_000, 1000
		if r := c.acquire(r); r.view.Resource(0).Rate != uint32(i+1) {
			t.Fatalf("client %d finds %d tokens in the bucket", i, r.view.Resource(0).Rate)
		}
	}
	total := uint64(0)
	for i, w := range s.listeners[0].workers {
		n := w.received.Load()
		if total += n; n == 0 {
			t.Errorf("worker %d had nothing to do", i)
		}
	}
	if total != clients {
		t.Errorf("%d datagrams counted, want %d", total, clients)
	}
}

// Sockets that share a port do not share it with another server, and all are closed at
// the end.
func TestWorkersKeepTheirPort(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	c := Config{Tenants: []Tenant{{Keys: []apikey.Key{key}}}, Workers: 3}
	s := start(t, c)
	c.Listen = []string{s.Addrs()[0].String()}
	if second, err := New(c); err == nil || !strings.Contains(err.Error(), "taken by another program") {
		second.Close()
		t.Fatalf("a second server on %s: %v", c.Listen[0], err)
	}
	s.Close()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
	plain, err := udp.Host().Listen(netip.MustParseAddrPort(c.Listen[0]), udp.Options{})
	if err != nil {
		t.Fatalf("after the end: %v", err)
	}
	plain.Close()
}

// A wildcard and an address of its family are the same port to two servers, whichever was
// first; the wildcards of two families are two.
func TestWildcardsAreTaken(t *testing.T) {
	c := Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Workers: 2}
	for _, hosts := range [][]string{{"0.0.0.0", "127.0.0.1", "127.0.0.2"}, {"[::]", "[::1]"}} {
		for _, first := range hosts {
			if !canListen(first + ":0") {
				continue
			}
			c.Listen = []string{first + ":0"}
			s := start(t, c)
			port := fmt.Sprint(":", s.Addrs()[0].Port())
			for _, second := range hosts {
				c.Listen = []string{second + port}
				other, err := New(c)
				apart := first != second && first != hosts[0] && second != hosts[0]
				if err == nil {
					other.Close()
				} else if !strings.Contains(err.Error(), "taken by another program") {
					t.Errorf("%s: %v", second+port, err)
				}
				if (err == nil) != apart {
					t.Errorf("a server on %s beside one on %s: %v", second, first, err)
				}
			}
			s.Close()
		}
	}
}

// batchConn has one batch of datagrams, refuses some of the answers, and is closed.
type batchConn struct {
	udp.Conn
	in      []udp.Datagram
	refused netip.AddrPort
	out     []udp.Datagram
}

func (c *batchConn) Read(ds []udp.Datagram) (int, error) {
	if c.in == nil {
		return 0, net.ErrClosed
	}
	for i := range c.in {
		d := &ds[i]
		d.N, d.Peer, d.Local = copy(d.Buf, c.in[i].Payload()), c.in[i].Peer, c.in[i].Local
	}
	n := len(c.in)
	c.in = nil
	return n, nil
}

func (c *batchConn) Write(ds []udp.Datagram) (int, error) {
	for i, d := range ds {
		if d.Peer == c.refused {
			return i, errors.New("no route")
		}
		d.Buf = append([]byte{}, d.Buf...)
		c.out = append(c.out, d)
	}
	return len(ds), nil
}

// Of datagrams that came at once each that is due an answer gets its own, from the
// address that it asked; one that cannot be sent keeps none back.
func TestBatchIsAnswered(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	conn := &batchConn{}
	w.conn = conn
	at := func(i int) netip.AddrPort { return netip.AddrPortFrom(peer.Addr(), uint16(1000+i)) }
	local := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}) }
	for i := range batchSize {
		c.next()
		b := c.request(checkout(0))
		if i%4 == 3 {
			b = b[:30]
		}
		conn.in = append(conn.in, udp.Datagram{Buf: b, N: len(b), Peer: at(i), Local: local(i)})
	}
	conn.refused = at(9)
	w.run(t.Context())
	next := 0
	for _, d := range conn.out {
		for next%4 == 3 || next == 9 {
			next++
		}
		r := c.open(d.Payload(), wire.Layout2)
		if d.Peer != at(next) || d.Local != local(next) || r.header.UniqueID[0] != byte(next+1) {
			t.Errorf("answer to %v from %v, about request %d; want request %d", d.Peer, d.Local, r.header.UniqueID[0], next+1)
		}
		next++
	}
	count, _, _ := w.counts.latency.cumulative()
	if want := batchSize*3/4 - 1; len(conn.out) != want || count != uint64(want) || w.counts.writeErrors.Load() != 1 {
		t.Errorf("%d answers, %d measured, %d errors; want %d and one error", len(conn.out), count, w.counts.writeErrors.Load(), want)
	}
	if n := w.received.Load(); n != batchSize {
		t.Errorf("%d datagrams counted", n)
	}
}

func TestNumberOfWorkers(t *testing.T) {
	c := Config{Listen: []string{"127.0.0.1:0"}, Tenants: make([]Tenant, 1)}
	for n, want := range map[int]int{0: runtime.GOMAXPROCS(0), 1: 1, 1024: 1024, -1: -1, 1025: -1} {
		c.Workers = n
		st, err := c.check()
		if want < 0 && (err == nil || !strings.Contains(err.Error(), "workers: ")) {
			t.Errorf("%d: %v", n, err)
		}
		if want > 0 && (err != nil || st.Workers != want) {
			t.Errorf("%d: %v", n, err)
		}
	}
}
