package udp_test

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/udp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t testing.TB, s udp.Stack, addr string, o udp.Options) udp.Conn {
	t.Helper()
	c, err := s.Listen(netip.MustParseAddrPort(addr), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func write(t testing.TB, c udp.Conn, payload string, to netip.AddrPort, from netip.Addr) {
	t.Helper()
	ds := []udp.Datagram{{Buf: []byte(payload), N: len(payload), Peer: to, Local: from}}
	if n, err := c.Write(ds); n != 1 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
}

func read(t testing.TB, c udp.Conn, space int) udp.Datagram {
	t.Helper()
	ds := []udp.Datagram{{Buf: make([]byte, space)}}
	if n, err := c.Read(ds); n != 1 || err != nil {
		t.Fatalf("Read = %d, %v", n, err)
	}
	return ds[0]
}

// hasIPv6 is the feature probe: a machine may have no IPv6 loopback.
func hasIPv6() bool {
	c, err := udp.Host().Listen(netip.MustParseAddrPort("[::1]:0"), udp.Options{})
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func loopbacks() []string {
	addrs := []string{"127.0.0.1:0"}
	if hasIPv6() {
		addrs = append(addrs, "[::1]:0")
	}
	return addrs
}

func TestHostRoundTrip(t *testing.T) {
	for _, addr := range loopbacks() {
		a, b := listen(t, udp.Host(), addr, udp.Options{}), listen(t, udp.Host(), addr, udp.Options{ReadBuffer: 1 << 16, WriteBuffer: 1 << 16})
		write(t, a, "question", b.LocalAddr(), netip.Addr{})
		d := read(t, b, 100)
		if string(d.Payload()) != "question" || d.Peer != a.LocalAddr() || d.Local.IsValid() {
			t.Errorf("%s: read %q from %v to %v", addr, d.Payload(), d.Peer, d.Local)
		}
	}
}

func TestLongDatagramIsCut(t *testing.T) {
	a, b := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{}), listen(t, udp.Host(), "127.0.0.1:0", udp.Options{})
	write(t, a, "0123456789", b.LocalAddr(), netip.Addr{})
	if d := read(t, b, 4); string(d.Payload()) != "0123" {
		t.Errorf("read %q", d.Payload())
	}
}

func TestWriteNamesTheFirstFailure(t *testing.T) {
	a, b := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{}), listen(t, udp.Host(), "127.0.0.1:0", udp.Options{})
	good := udp.Datagram{Buf: []byte("x"), N: 1, Peer: b.LocalAddr()}
	tooBig := udp.Datagram{Buf: make([]byte, 1<<16), N: 1 << 16, Peer: b.LocalAddr()}
	n, err := a.Write([]udp.Datagram{good, tooBig, good})
	if n != 1 || err == nil || udp.Closed(err) {
		t.Errorf("Write = %d, %v", n, err)
	}
	read(t, b, 10)
}

func TestPlainBindIsExclusive(t *testing.T) {
	for _, s := range []udp.Stack{udp.Host(), udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1"))} {
		a := listen(t, s, "0.0.0.0:0", udp.Options{})
		for _, ip := range []string{"0.0.0.0", "127.0.0.1"} {
			_, err := s.Listen(netip.AddrPortFrom(netip.MustParseAddr(ip), a.LocalAddr().Port()), udp.Options{})
			if !udp.InUse(err) {
				t.Errorf("second bind of %s: %v", ip, err)
			}
		}
	}
}

func TestListenRefusesNoAddress(t *testing.T) {
	if _, err := udp.Host().Listen(netip.AddrPort{}, udp.Options{}); err == nil || udp.InUse(err) {
		t.Errorf("Listen of nothing: %v", err)
	}
}

func TestCloseEndsRead(t *testing.T) {
	for _, s := range []udp.Stack{udp.Host(), udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1"))} {
		c := listen(t, s, "127.0.0.1:0", udp.Options{})
		done := make(chan error)
		go func() {
			_, err := c.Read([]udp.Datagram{{Buf: make([]byte, 10)}})
			done <- err
		}()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !udp.Closed(err) {
			t.Errorf("Read after Close: %v", err)
		}
		if err := c.Close(); !udp.Closed(err) {
			t.Errorf("second Close: %v", err)
		}
		if _, err := c.Write([]udp.Datagram{{Peer: c.LocalAddr()}}); !udp.Closed(err) {
			t.Errorf("Write after Close: %v", err)
		}
	}
}

// hopStack refuses the ports in taken and remembers what it was asked for.
type hopStack struct {
	taken func(uint16) bool
	asked []uint16
}

func (s *hopStack) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	s.asked = append(s.asked, addr.Port())
	if !s.taken(addr.Port()) {
		return nil, errFree
	}
	n := udp.NewNetwork().Host(addr.Addr())
	c, err := n.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return n.Listen(addr, o) // a real "in use"
}

var errFree = errors.New("free")

func TestListenNextOrder(t *testing.T) {
	tests := []struct {
		cur   uint16
		taken []uint16
		want  []uint16
	}{
		{0, nil, []uint16{49152}},
		{40000, nil, []uint16{49152}},
		{49151, []uint16{49152}, []uint16{49152, 49153}},
		{49152, nil, []uint16{49153}},
		{65534, []uint16{65535}, []uint16{65535, 49152}},
		{65535, []uint16{49152, 49153}, []uint16{49152, 49153, 49154}},
	}
	for _, tt := range tests {
		s := &hopStack{taken: func(p uint16) bool { return slices.Contains(tt.taken, p) }}
		_, err := udp.ListenNext(s, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), tt.cur), udp.Options{})
		if !errors.Is(err, errFree) {
			t.Errorf("from %d: %v", tt.cur, err)
		}
		if !slices.Equal(s.asked, tt.want) {
			t.Errorf("from %d: tried %v, want %v", tt.cur, s.asked, tt.want)
		}
	}
}

func TestListenNextGivesUpAfterTheRange(t *testing.T) {
	for cur, want := range map[uint16]int{1: 16384, 50000: 16383} {
		s := &hopStack{taken: func(uint16) bool { return true }}
		_, err := udp.ListenNext(s, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), cur), udp.Options{})
		if !errors.Is(err, udp.ErrPortsTaken) {
			t.Errorf("from %d: %v", cur, err)
		}
		slices.Sort(s.asked)
		if tried := len(slices.Compact(s.asked)); tried != want || s.asked[0] < udp.FirstSteeringPort {
			t.Errorf("from %d: tried %d different ports from %d, want %d", cur, tried, s.asked[0], want)
		}
	}
}

func TestListenNextOnTheHost(t *testing.T) {
	first := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{})
	cur := first.LocalAddr()
	for range 3 {
		c, err := udp.ListenNext(udp.Host(), cur, udp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		next := c.LocalAddr()
		if next.Port() < udp.FirstSteeringPort || next.Addr() != cur.Addr() || next == cur {
			t.Errorf("%v is followed by %v", cur, next)
		}
		cur = next
	}
}

func TestNoAllocation(t *testing.T) {
	for name, tt := range map[string]struct {
		addr string
		o    udp.Options
	}{"plain": {"127.0.0.1:0", udp.Options{}}, "asked": {"0.0.0.0:0", udp.Options{AskedAddr: true}}} {
		c := listen(t, udp.Host(), tt.addr, tt.o)
		to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), c.LocalAddr().Port())
		out := []udp.Datagram{{Buf: bytes.Repeat([]byte("x"), 200), N: 200, Peer: to, Local: netip.MustParseAddr("127.0.0.1")}}
		in := []udp.Datagram{{Buf: make([]byte, 1201)}}
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := c.Write(out); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(in); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations per write and read", name, allocs)
		}
	}
}

func BenchmarkWriteRead(b *testing.B) {
	c := listen(b, udp.Host(), "127.0.0.1:0", udp.Options{})
	out := []udp.Datagram{{Buf: make([]byte, 200), N: 200, Peer: c.LocalAddr()}}
	in := []udp.Datagram{{Buf: make([]byte, 1201)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(in); err != nil {
			b.Fatal(err)
		}
	}
}
