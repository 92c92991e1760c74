package udp

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/storm"
)

// What the kernel tells beside an address is found before and behind it.
func TestControlTellsTimeAndDrops(t *testing.T) {
	stamp := appendHeader(nil, headerLen+2*wordLen, unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS)
	for _, part := range []uint64{1_800_000_000, 123_456_789} {
		stamp = binary.NativeEndian.AppendUint64(stamp, part)
	}
	drops := appendHeader(nil, headerLen+4, unix.SOL_SOCKET, unix.SO_RXQ_OVFL)
	drops = append(binary.NativeEndian.AppendUint32(drops, 77), 0, 0, 0, 0)
	addr := appendSource(nil, netip.MustParseAddr("192.0.2.7"))
	addr = append(addr, make([]byte, aligned(len(addr))-len(addr))...)
	if wordLen != 8 {
		t.Skip("the messages of this test are those of 64-bit systems")
	}
	size := appendHeader(nil, headerLen+4, unix.IPPROTO_UDP, unix.UDP_GRO)
	size = append(binary.NativeEndian.AppendUint32(size, 190), 0, 0, 0, 0)
	want := control{netip.MustParseAddr("192.0.2.7"), 1_800_000_000_123_456_789, 77, true, 190}
	for _, b := range [][]byte{slices.Concat(addr, stamp, drops, size), slices.Concat(size, drops, stamp, addr)} {
		if got := readControl(b); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	short := func(kind uint32) []byte { return appendHeader(nil, headerLen, unix.SOL_SOCKET, kind) }
	for _, b := range [][]byte{stamp[:len(stamp)-1], drops[:headerLen+3], short(unix.SCM_TIMESTAMPNS), short(unix.SO_RXQ_OVFL)} {
		if got := readControl(b); got != (control{}) {
			t.Errorf("cut: %+v", got)
		}
	}
}

// The kernel's counter has 32 bits, and datagrams may tell it out of order.
func TestDropCounter(t *testing.T) {
	var c dropCounter
	total := uint64(0)
	for _, s := range []struct{ told, more uint32 }{{5, 5}, {5, 0}, {9, 4}, {7, 0}, {10, 1}} {
		c.saw(s.told)
		if total += uint64(s.more); c.total.Load() != total {
			t.Errorf("told %d: %d, want %d", s.told, c.total.Load(), total)
		}
	}
	c = dropCounter{last: math.MaxUint32 - 1}
	if c.saw(3); c.total.Load() != 5 {
		t.Errorf("over the end: %d, want 5", c.total.Load())
	}
}

func TestControlTellsTheAddress(t *testing.T) {
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
		if got := readControl(tt.b).local; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func controlTarget() *storm.Target {
	target := storm.New("FuzzControl", func(t testing.TB, b []byte) {
		if a := readControl(b).local; a.IsMulticast() && a.Is6() {
			t.Errorf("%v cannot be a source", a)
		}
	})
	target.Add(appendSource(nil, netip.MustParseAddr("192.0.2.7")))
	target.Add(appendSource(nil, netip.MustParseAddr("2001:db8::7")))
	return target
}

func FuzzControl(f *testing.F)      { controlTarget().Fuzz(f) }
func TestStormControl(t *testing.T) { controlTarget().Storm(t) }

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
