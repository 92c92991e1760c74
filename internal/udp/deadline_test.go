package udp_test

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// twins are this machine's stack, the same with a system call for each datagram, and
// their twin in memory.
func twins() map[string]udp.Stack {
	return map[string]udp.Stack{
		"host":   udp.Host(),
		"bursts": bursts{udp.Host()},
		"single": single{udp.Host()},
		"memory": udp.NewNetwork().Host(netip.MustParseAddr("127.0.0.1")),
	}
}

// bursts opens sockets that move datagrams in bursts where the system can do that.
type bursts struct{ udp.Stack }

func (s bursts) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	o.Bursts = true
	return s.Stack.Listen(addr, o)
}

// single opens sockets that move one datagram a system call.
type single struct{ udp.Stack }

func (s single) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	o.NoBatch = true
	return s.Stack.Listen(addr, o)
}

func readInto(c udp.Conn) error {
	_, err := c.Read([]udp.Datagram{{Buf: make([]byte, 10)}})
	return err
}

// A deadline ends a Read that waits, and later ones even beside a datagram that
// is there, until it is taken back.
func TestReadDeadline(t *testing.T) {
	for name, s := range twins() {
		c := listen(t, s, "127.0.0.1:0", udp.Options{})
		waiting := make(chan error)
		go func() { waiting <- readInto(c) }()
		if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; !errors.Is(err, os.ErrDeadlineExceeded) || udp.Closed(err) {
			t.Errorf("%s: a Read that waited: %v", name, err)
		}
		write(t, c, "x", c.LocalAddr(), netip.Addr{})
		if err := readInto(c); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a later Read: %v", name, err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := readInto(c); err != nil {
			t.Errorf("%s: without a deadline: %v", name, err)
		}
		c.Close()
		if err := c.SetReadDeadline(time.Time{}); !udp.Closed(err) {
			t.Errorf("%s: after Close: %v", name, err)
		}
	}
}

func TestNetworkReadDeadlineToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := listen(t, udp.NewNetwork().Host(ipA), "10.0.0.1:1", udp.Options{})
		start := time.Now()
		if err := c.SetReadDeadline(start.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(start.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := readInto(c); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestPending(t *testing.T) {
	for name, s := range twins() {
		c := listen(t, s, "127.0.0.1:0", udp.Options{})
		if c.Pending() {
			t.Errorf("%s: something is there from the beginning", name)
		}
		for range 2 {
			write(t, c, "x", c.LocalAddr(), netip.Addr{})
		}
		for range 2 {
			if !c.Pending() {
				t.Errorf("%s: nothing is there", name)
			}
			read(t, c, 10)
		}
		if c.Pending() {
			t.Errorf("%s: what was read is still there", name)
		}
		c.Close()
		if c.Pending() {
			t.Errorf("%s: something is there after Close", name)
		}
	}
}
