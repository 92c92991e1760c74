package udp

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// burstSocket opens a socket that has bursts, and as many buffers for them as are said.
func burstSocket(t testing.TB, buffers ...int) *socket {
	t.Helper()
	o := Options{Bursts: true, Received: true, ReadBuffer: 1 << 20}
	for _, n := range buffers {
		o.BurstBuffers = n
	}
	s, err := host{}.open(netip.MustParseAddrPort("127.0.0.1:0"), o, exclusive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if r, ok := s.in.(*batchReader); !ok || !r.asked.bursts || !s.bursts.able.Load() {
		t.Skip("the system knows no bursts")
	}
	return s
}

// burstOf makes n datagrams of one size, each told by its number.
func burstOf(n int, to netip.AddrPort) []Datagram {
	ds := make([]Datagram, n)
	for i := range ds {
		ds[i] = Datagram{Buf: fmt.Appendf(nil, "%06d", i), N: 6, Peer: to}
	}
	return ds
}

// What is sent in bursts comes in order and whole, however little of it is taken at a time, and whether
// or not whoever receives it asked for bursts.
func TestBursts(t *testing.T) {
	const n = 200 // more than one system call sends
	for _, take := range []int{1, 3, 32, n} {
		from, to, few, plain := burstSocket(t), burstSocket(t), burstSocket(t, 2), hostSocket(t)
		for _, c := range []*socket{to, few, plain} {
			out := burstOf(n, c.local)
			out[n-1].N = 4 // the last of a burst may be shorter
			if sent, err := from.Write(out); sent != n || err != nil {
				t.Fatalf("Write = %d, %v", sent, err)
			}
			in := make([]Datagram, take)
			for i := range in {
				in[i].Buf = make([]byte, 10)
			}
			for next := 0; next < n; {
				got, err := c.Read(in)
				if err != nil || got == 0 {
					t.Fatalf("Read = %d, %v", got, err)
				}
				for _, d := range in[:got] {
					want := string(out[next].Payload())
					if next++; string(d.Payload()) != want || d.Peer.Port() != from.local.Port() || c != plain && d.Received == 0 {
						t.Fatalf("%q from %v at %d, want %q", d.Payload(), d.Peer, d.Received, want)
					}
				}
			}
			if got, err := c.ReadReady(in); got != 0 || err != nil {
				t.Fatalf("then %d more, %v", got, err)
			}
		}
		if _, out, _ := from.Bursts(); out != 3*n {
			t.Errorf("%d of %d left in bursts", out, 3*n)
		}
		if space := len(few.in.(*batchReader).space); space != 2*burstStride {
			t.Errorf("%d bytes for 2 bursts", space)
		}
		if in, _, _ := to.Bursts(); in == 0 || in > n {
			t.Errorf("%d of %d came in bursts", in, n)
		}
	}
}

// A burst that is read ahead is handed out to whoever reads ahead, to the last of it.
func TestBurstReadAhead(t *testing.T) {
	s := burstSocket(t)
	const n = 50
	if sent, err := s.Write(burstOf(n, s.local)); sent != n || err != nil {
		t.Fatalf("Write = %d, %v", sent, err)
	}
	in := make([]Datagram, 7)
	for i := range in {
		in[i].Buf = make([]byte, 10)
	}
	next := 0
	for got := s.ReadAhead(in); got > 0; got = s.ReadAhead(in) {
		for _, d := range in[:got] {
			if want := fmt.Sprintf("%06d", next); string(d.Payload()) != want {
				t.Fatalf("%q, want %q", d.Payload(), want)
			}
			next++
		}
	}
	if next != n {
		t.Errorf("%d of %d", next, n)
	}
	_ = s.Close()
	if got := s.ReadAhead(in); got != 0 {
		t.Errorf("%d after Close", got)
	}
}

// Only what goes the same way and has one size goes together.
func TestBurstEnds(t *testing.T) {
	a, b := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	sized := func(to netip.AddrPort, sizes ...int) (ds []Datagram) {
		for _, n := range sizes {
			ds = append(ds, Datagram{Buf: make([]byte, n), N: n, Peer: to})
		}
		return ds
	}
	long := make([]int, 2*burstSize)
	for i := range long {
		long[i] = 1100
	}
	otherSource := sized(a, 5, 5)
	otherSource[1].Local = netip.MustParseAddr("127.0.0.2")
	for name, c := range map[string]struct {
		ds   []Datagram
		want int
	}{
		"one":              {sized(a, 5), 1},
		"equal":            {sized(a, 5, 5, 5), 3},
		"the last shorter": {sized(a, 5, 5, 4, 4), 3},
		"longer":           {sized(a, 5, 5, 6), 2},
		"empty":            {sized(a, 5, 0), 1},
		"first empty":      {sized(a, 0, 0), 1},
		"another peer":     {append(sized(a, 5, 5), sized(b, 5)...), 2},
		"another source":   {otherSource, 1},
		"too many":         {burstOf(2*burstSize, a), burstSize},
		"too long":         {sized(a, long...), 65_000 / 1100},
	} {
		if got := burst(c.ds); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A burst that the system refuses goes one by one, nothing twice; only an error that is of the device
// ends all bursts.
func TestBurstRefused(t *testing.T) {
	for errno, able := range map[unix.Errno]bool{unix.EINVAL: true, unix.EMSGSIZE: true, unix.EIO: false, unix.EOPNOTSUPP: false} {
		from, to := burstSocket(t), burstSocket(t)
		w, ok := from.out.(*batchWriter)
		if !ok {
			t.Fatal("no batches")
		}
		try := w.try
		w.try = func(fd uintptr) bool {
			for i := range w.n {
				if w.batch.headers[i].Hdr.Iovlen > 1 {
					w.err = errno
					return true
				}
			}
			return try(fd)
		}
		const n = 5
		if sent, err := from.Write(burstOf(n, to.local)); sent != n || err != nil {
			t.Fatalf("%v: Write = %d, %v", errno, sent, err)
		}
		in := make([]Datagram, 2*n)
		for i := range in {
			in[i].Buf = make([]byte, 10)
		}
		for next := 0; next < n; {
			got, err := to.Read(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range in[:got] {
				if want := fmt.Sprintf("%06d", next); string(d.Payload()) != want {
					t.Errorf("%v: %q, want %q", errno, d.Payload(), want)
				}
				next++
			}
		}
		if _, out, now := from.Bursts(); out != 0 || now != able {
			t.Errorf("%v: %d in bursts, and able is %v", errno, out, now)
		}
	}
	// What is wrong with a datagram alone is told.
	s := burstSocket(t)
	if n, err := s.Write([]Datagram{{Buf: make([]byte, 70_000), N: 70_000, Peer: s.local}}); n != 0 || err == nil {
		t.Errorf("Write = %d, %v", n, err)
	}
}

// Bursts allocate nothing either way.
func TestBurstAllocations(t *testing.T) {
	s := burstSocket(t)
	out, in := burstOf(20, s.local), make([]Datagram, 20)
	for i := range in {
		in[i].Buf = make([]byte, 10)
	}
	allocs := testing.AllocsPerRun(100, func() {
		if n, err := s.Write(out); n != len(out) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		for n := 0; n < len(out); {
			got, err := s.Read(in)
			if err != nil {
				t.Fatal(err)
			}
			n += got
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
