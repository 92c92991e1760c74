package udp_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// space makes datagrams to read into.
func space(n, size int) []udp.Datagram {
	ds := make([]udp.Datagram, n)
	for i := range ds {
		ds[i].Buf = make([]byte, size)
	}
	return ds
}

// readAll reads until n datagrams were there.
func readAll(t *testing.T, c udp.Conn, n int) []udp.Datagram {
	t.Helper()
	ds := space(n, 50)
	for got := 0; got < n; {
		more, err := c.Read(ds[got:])
		if err != nil || more == 0 {
			t.Fatalf("Read = %d, %v after %d", more, err, got)
		}
		got += more
	}
	return ds
}

// More datagrams than a system call takes keep their order, bytes, lengths and peers.
func TestManyDatagrams(t *testing.T) {
	for name, s := range twins() {
		for _, addr := range loopbacks() {
			if name == "memory" && addr != "127.0.0.1:0" {
				continue
			}
			a, b := listen(t, s, addr, udp.Options{}), listen(t, s, addr, udp.Options{})
			other := listen(t, s, addr, udp.Options{})
			const n = 75
			out := make([]udp.Datagram, n)
			for i := range out {
				payload := fmt.Appendf(nil, "%d%*s", i, i%7, "")
				out[i] = udp.Datagram{Buf: append(payload, "behind"...), N: len(payload), Peer: b.LocalAddr()}
				if i%5 == 4 {
					out[i].Peer = other.LocalAddr()
				}
			}
			if sent, err := a.Write(out); sent != n || err != nil {
				t.Fatalf("%s: Write = %d, %v", name, sent, err)
			}
			in, apart := readAll(t, b, n-n/5), readAll(t, other, n/5)
			for i := range out {
				d := in
				if i%5 == 4 {
					d = apart
				}
				if !bytes.Equal(d[0].Payload(), out[i].Payload()) || d[0].Peer != a.LocalAddr() {
					t.Fatalf("%s: datagram %d is %q from %v", name, i, d[0].Payload(), d[0].Peer)
				}
				if i%5 == 4 {
					apart = apart[1:]
				} else {
					in = in[1:]
				}
			}
		}
	}
}

// On Linux what is there comes in one call, and not more than there is space for.
func TestReadTakesWhatIsThere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("one datagram a call here")
	}
	c := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{})
	for range 5 {
		write(t, c, "x", c.LocalAddr(), netip.Addr{})
	}
	for _, want := range []int{3, 2} {
		if n, err := c.Read(space(3, 10)); n != want || err != nil {
			t.Errorf("Read = %d, %v, want %d", n, err, want)
		}
	}
}

// A datagram that cannot be sent is told by its place, and those before it have gone.
func TestWriteStopsInTheMiddle(t *testing.T) {
	for name, s := range twins() {
		a, b := listen(t, s, "127.0.0.1:0", udp.Options{}), listen(t, s, "127.0.0.1:0", udp.Options{})
		out := make([]udp.Datagram, 40)
		for i := range out {
			out[i] = udp.Datagram{Buf: []byte{byte(i)}, N: 1, Peer: b.LocalAddr()}
		}
		out[35].Peer = netip.MustParseAddrPort("[::1]:9")
		if n, err := a.Write(out); n != 35 || !errors.Is(err, udp.ErrNoRoute) {
			t.Errorf("%s: Write = %d, %v", name, n, err)
		}
		readAll(t, b, 35)
		if n, err := a.Write(out[36:]); n != 4 || err != nil {
			t.Errorf("%s: behind it: %d, %v", name, n, err)
		}
		if d := readAll(t, b, 4); d[0].Payload()[0] != 36 {
			t.Errorf("%s: behind it comes %d", name, d[0].Payload()[0])
		}
		if n, err := a.Write(nil); n != 0 || err != nil {
			t.Errorf("%s: nothing: %d, %v", name, n, err)
		}
	}
}

// The time at which the system took a datagram in is told to who asks.
func TestReceived(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not told here")
	}
	for name, s := range twins() {
		if name == "memory" {
			continue
		}
		c := listen(t, s, "127.0.0.1:0", udp.Options{Received: true})
		write(t, c, "first", c.LocalAddr(), netip.Addr{}) // stamps begin while it is under way, or on reading
		read(t, c, 10)
		before := time.Now().UnixNano()
		write(t, c, "x", c.LocalAddr(), netip.Addr{})
		sent := time.Now().UnixNano()
		if d := read(t, c, 10); d.Received < before || d.Received > time.Now().UnixNano() {
			t.Errorf("%s: received at %d, sent from %d to %d", name, d.Received, before, sent)
		}
		silent := listen(t, s, "127.0.0.1:0", udp.Options{})
		write(t, c, "x", silent.LocalAddr(), netip.Addr{})
		in := space(1, 10)
		in[0].Received = 7
		if _, err := silent.Read(in); err != nil || in[0].Received != 0 {
			t.Errorf("%s: not asked: %d, %v", name, in[0].Received, err)
		}
	}
}

// In memory that time is the network's.
func TestNetworkReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := udp.NewNetwork()
		n.SetLink(func(udp.Packet) udp.Fate { return udp.Fate{Delay: time.Second} })
		c := listen(t, n.Host(ipA), "10.0.0.1:1", udp.Options{})
		write(t, c, "x", c.LocalAddr(), netip.Addr{})
		arrives := time.Now().Add(time.Second)
		time.Sleep(5 * time.Second)
		if d := read(t, c, 10); d.Received != arrives.UnixNano() {
			t.Errorf("received at %d, want %d", d.Received, arrives.UnixNano())
		}
	})
}

// What found no room in the receive buffer is counted, as soon as another datagram
// tells it.
func TestDropped(t *testing.T) {
	for name, s := range twins() {
		if runtime.GOOS != "linux" && name != "memory" {
			continue // not told
		}
		c := listen(t, s, "127.0.0.1:0", udp.Options{CountDrops: true, ReadBuffer: 4096})
		const n = 5000
		for range n {
			write(t, c, "x", c.LocalAddr(), netip.Addr{})
		}
		kept := 0
		for c.Pending() {
			more, err := c.Read(space(100, 10))
			if err != nil {
				t.Fatal(err)
			}
			kept += more
		}
		for range 2 { // told twice, counted once
			write(t, c, "x", c.LocalAddr(), netip.Addr{})
			read(t, c, 10)
		}
		if got := c.Dropped(); kept == n || got != uint64(n-kept) {
			t.Errorf("%s: %d dropped, %d of %d came", name, got, kept, n)
		}
		c.Close()
		if got := c.Dropped(); got != uint64(n-kept) {
			t.Errorf("%s: %d dropped after Close", name, got)
		}
	}
}

// What a socket says of its receive buffer is what was asked for, or less where the
// system does not give so much.
func TestReadBuffer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not told here")
	}
	for _, size := range []int{8192, 100_000} { // less than what systems allow
		c := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{ReadBuffer: size})
		if got := c.ReadBuffer(); got != size {
			t.Errorf("%d bytes of %d", got, size)
		}
		c.Close()
		if got := c.ReadBuffer(); got != 0 {
			t.Errorf("%d bytes after Close", got)
		}
	}
	for _, size := range []int{1 << 30, 1<<32 + 8192, 3 << 31} { // the last two are 8192 and less than 0 in 32 bits
		if c := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{ReadBuffer: size}); c.ReadBuffer() <= 100_000 {
			t.Errorf("%d bytes of all that can be had when it is asked for %d", c.ReadBuffer(), size)
		}
	}
}

// Each datagram of a batch names the address that it was sent to, and each answer
// leaves from its own.
func TestBatchOfAddressesAsked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not told here")
	}
	s := listen(t, udp.Host(), "0.0.0.0:0", udp.Options{AskedAddr: true, Received: true, CountDrops: true})
	c := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{})
	out := make([]udp.Datagram, 5)
	for i := range out {
		to := netip.AddrFrom4([4]byte{127, 0, 0, byte(70 + i)}) // all of 127/8 is this host
		out[i] = udp.Datagram{Buf: []byte{byte(i)}, N: 1, Peer: netip.AddrPortFrom(to, s.LocalAddr().Port())}
	}
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	in := readAll(t, s, len(out))
	for i := range in {
		if in[i].Local != out[i].Peer.Addr() || in[i].Received == 0 {
			t.Errorf("datagram %d was sent to %v at %d", i, in[i].Local, in[i].Received)
		}
	}
	in[4].Local = netip.Addr{} // the system's choice, behind a choice of ours
	if _, err := s.Write(in); err != nil {
		t.Fatal(err)
	}
	for i, d := range readAll(t, c, len(in)) {
		want := out[i].Peer.Addr()
		if i == 4 {
			want = c.LocalAddr().Addr()
		}
		if d.Peer.Addr() != want {
			t.Errorf("answer %d from %v, want %v", i, d.Peer, want)
		}
	}
}

func TestBatchDoesNotAllocate(t *testing.T) {
	for _, o := range []udp.Options{{AskedAddr: true, Received: true, CountDrops: true}, {AskedAddr: true, Received: true, NoBatch: true}, {}} {
		for _, addr := range []string{"0.0.0.0:0", "[::]:0"} {
			if addr == "[::]:0" && !hasIPv6() {
				continue
			}
			to := listen(t, udp.Host(), addr, o)
			loopback := netip.MustParseAddr("127.0.0.1")
			if !to.LocalAddr().Addr().Is4() {
				loopback = netip.IPv6Loopback()
			}
			in, out := space(32, 100), space(32, 100)
			for i := range out {
				out[i].N, out[i].Local = 100, loopback
				out[i].Peer = netip.AddrPortFrom(loopback, to.LocalAddr().Port())
			}
			n := testing.AllocsPerRun(50, func() {
				if _, err := to.Write(out); err != nil {
					t.Fatal(err)
				}
				for got := 0; got < len(in); {
					more, err := to.Read(in[got:])
					if err != nil {
						t.Fatal(err)
					}
					got += more
				}
			})
			if n != 0 {
				t.Errorf("%+v: %v allocations", o, n)
			}
		}
	}
}
