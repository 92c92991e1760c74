package udp

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAskedAddr(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")
	other := appendHeader(nil, headerLen+4, unix.SOL_SOCKET, unix.SO_TIMESTAMP)
	other = append(other, make([]byte, aligned(headerLen+4)-headerLen)...)
	for name, tt := range map[string]struct {
		b    []byte
		want netip.Addr
	}{
		"nothing":         {nil, netip.Addr{}},
		"IPv4":            {appendSource(nil, v4), v4},
		"IPv6":            {appendSource(nil, v6), v6},
		"behind another":  {appendSource(other, v6), v6},
		"multicast":       {appendSource(nil, netip.MustParseAddr("ff02::1")), netip.Addr{}},
		"header cut":      {appendSource(nil, v4)[:headerLen-1], netip.Addr{}},
		"message cut":     {appendSource(nil, v4)[:headerLen+7], netip.Addr{}},
		"size below head": {appendHeader(nil, headerLen-1, unix.IPPROTO_IP, unix.IP_PKTINFO), netip.Addr{}},
		"info too short":  {appendHeader(nil, headerLen, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO), netip.Addr{}},
		"size huge":       {append([]byte{255, 255, 255, 255, 255, 255, 255, 255}, make([]byte, 40)...), netip.Addr{}},
	} {
		if got := askedAddr(tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func FuzzAskedAddr(f *testing.F) {
	f.Add(appendSource(nil, netip.MustParseAddr("192.0.2.7")))
	f.Add(appendSource(nil, netip.MustParseAddr("2001:db8::7")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a := askedAddr(b); a.IsMulticast() && a.Is6() {
			t.Errorf("%v cannot be a source", a)
		}
	})
}

// An answer must leave from the address that was asked, not from the one that
// routing would choose.
func TestAnswerLeavesFromTheAddressAsked(t *testing.T) {
	s, err := Host().Listen(netip.MustParseAddrPort("0.0.0.0:0"), Options{AskedAddr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := Host().Listen(netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asked := netip.MustParseAddr("127.0.0.77") // all of 127/8 is this host on Linux
	to := netip.AddrPortFrom(asked, s.LocalAddr().Port())
	ds := []Datagram{{Buf: []byte("ping"), N: 4, Peer: to}}
	if _, err := c.Write(ds); err != nil {
		t.Fatal(err)
	}
	in := []Datagram{{Buf: make([]byte, 10)}}
	if _, err := s.Read(in); err != nil {
		t.Fatal(err)
	}
	if in[0].Local != asked {
		t.Fatalf("asked at %v, want %v", in[0].Local, asked)
	}
	if _, err := s.Write(in); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(ds); err != nil {
		t.Fatal(err)
	}
	if ds[0].Peer != to {
		t.Errorf("answered from %v, want %v", ds[0].Peer, to)
	}
}

func TestAnswerLeavesFromTheAddressAskedIPv6(t *testing.T) {
	s, err := Host().Listen(netip.MustParseAddrPort("[::]:0"), Options{AskedAddr: true})
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	defer s.Close()
	to := netip.AddrPortFrom(netip.MustParseAddr("::1"), s.LocalAddr().Port())
	c, err := Host().Listen(netip.MustParseAddrPort("[::1]:0"), Options{})
	if err != nil {
		t.Skipf("no IPv6 loopback here: %v", err)
	}
	defer c.Close()
	ds := []Datagram{{Buf: []byte("ping"), N: 4, Peer: to}}
	if _, err := c.Write(ds); err != nil {
		t.Fatal(err)
	}
	in := []Datagram{{Buf: make([]byte, 10)}}
	if _, err := s.Read(in); err != nil {
		t.Fatal(err)
	}
	if in[0].Local != to.Addr() {
		t.Fatalf("asked at %v, want %v", in[0].Local, to.Addr())
	}
	if _, err := s.Write(in); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(ds); err != nil {
		t.Fatal(err)
	}
	if ds[0].Peer != to {
		t.Errorf("answered from %v, want %v", ds[0].Peer, to)
	}
}
