package udp_test

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// What is there is read with all that Read tells of it; where nothing is, nobody waits, and a Read
// after that does.
func TestReadReady(t *testing.T) {
	for name, s := range twins() {
		if name == "single" || name == "host" && runtime.GOOS != "linux" {
			continue // it moves no batches
		}
		c := listen(t, s, "127.0.0.1:0", udp.Options{Received: true})
		ds := []udp.Datagram{{Buf: make([]byte, 3)}, {Buf: make([]byte, 3)}}
		ready := func(want ...string) {
			t.Helper()
			n, err := c.ReadReady(ds)
			for until := time.Now().Add(10 * time.Second); n < len(want) && err == nil && time.Now().Before(until); {
				runtime.Gosched() // a busy kernel may still be at it
				var more int
				more, err = c.ReadReady(ds[n:])
				n += more
			}
			if n != len(want) || err != nil {
				t.Fatalf("%s: %d, %v; want %q", name, n, err, want)
			}
			for i, d := range ds[:n] {
				if string(d.Payload()) != want[i] || d.Peer != c.LocalAddr() || d.Received == 0 {
					t.Errorf("%s: %q from %v at %d, want %q", name, d.Payload(), d.Peer, d.Received, want[i])
				}
			}
		}
		ready()
		for _, payload := range []string{"a", "b", "c"} {
			write(t, c, payload, c.LocalAddr(), netip.Addr{})
		}
		ready("a", "b")
		ready("c")
		ready()
		got := make(chan error)
		go func() { got <- readInto(c) }()
		runtime.Gosched()
		write(t, c, "d", c.LocalAddr(), netip.Addr{})
		if err := <-got; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
		if n, err := c.ReadReady(ds); n != 0 || !udp.Closed(err) {
			t.Errorf("%s: %d, %v after Close", name, n, err)
		}
	}
}
