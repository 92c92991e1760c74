package udp_test

import (
	"bytes"
	"net/netip"
	"runtime"
	"testing"

	"github.com/weirhq/weir/internal/udp"
)

// What is there is read at once, as much of it as there is space for, whether or
// not somebody waits in Read.
func TestReadAhead(t *testing.T) {
	for name, s := range twins() {
		if name == "host" && runtime.GOOS == "windows" {
			continue // cannot do that
		}
		c := listen(t, s, "127.0.0.1:0", udp.Options{})
		ds := make([]udp.Datagram, 2)
		for i := range ds {
			ds[i].Buf = make([]byte, 3)
		}
		if n := c.ReadAhead(ds); n != 0 {
			t.Errorf("%s: %d of nothing", name, n)
		}
		for _, payload := range []string{"a", "too long", "c"} {
			write(t, c, payload, c.LocalAddr(), netip.Addr{})
		}
		if n := c.ReadAhead(ds); n != 2 || string(ds[0].Payload()) != "a" || string(ds[1].Payload()) != "too" {
			t.Errorf("%s: %d, %v", name, n, ds)
		}
		if d := read(t, c, 3); string(d.Payload()) != "c" || d.Peer != c.LocalAddr() {
			t.Errorf("%s: then %q from %v", name, d.Payload(), d.Peer)
		}
		got := make(chan error)
		go func() { got <- readInto(c) }()
		for range 100 { // the other one waits by and by
			runtime.Gosched()
			if n := c.ReadAhead(ds); n != 0 {
				t.Errorf("%s: %d of nothing beside a Read", name, n)
			}
		}
		write(t, c, "x", c.LocalAddr(), netip.Addr{})
		if err := <-got; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
		if n := c.ReadAhead(ds); n != 0 {
			t.Errorf("%s: %d after Close", name, n)
		}
	}
}

func TestReadAheadAllocatesNothing(t *testing.T) {
	c := listen(t, udp.Host(), "127.0.0.1:0", udp.Options{})
	out := []udp.Datagram{{Buf: bytes.Repeat([]byte("x"), 200), N: 200, Peer: c.LocalAddr()}}
	in := []udp.Datagram{{Buf: make([]byte, 1201)}}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Write(out); err != nil {
			t.Fatal(err)
		}
		c.ReadAhead(in)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
