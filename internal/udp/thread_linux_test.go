package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func threadSocket(t testing.TB, o Options) *socket {
	t.Helper()
	o.OwnThread = true
	s, err := host{}.open(netip.MustParseAddrPort("127.0.0.1:0"), o, exclusive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, ok := s.conn.(*threadConn); !ok {
		t.Skip("the system moves no batches")
	}
	return s
}

// A socket with threads of its own waits for what is not there yet, takes what is, and answers.
func TestOwnThread(t *testing.T) {
	for _, o := range []Options{{}, {Bursts: true, BurstBuffers: 2}, {Received: true, CountDrops: true, ReadBuffer: 1 << 16, WriteBuffer: 1 << 16}} {
		s, peer := threadSocket(t, o), hostSocket(t)
		in := []Datagram{{Buf: make([]byte, 10)}, {Buf: make([]byte, 10)}, {Buf: make([]byte, 10)}}
		if n, err := s.ReadReady(in); n != 0 || err != nil {
			t.Fatalf("ReadReady = %d, %v when nothing is there", n, err)
		}
		if s.ReadAhead(in) != 0 || s.Pending() {
			t.Fatal("something is there")
		}
		for i := range 100 {
			go func() {
				if _, err := peer.Write(burstOf(2, s.local)); err != nil {
					t.Error(err)
				}
			}()
			for got := 0; got < 2; {
				n, err := s.Read(in)
				if err != nil || n == 0 {
					t.Fatalf("Read = %d, %v", n, err)
				}
				for k := range in[:n] {
					if string(in[k].Payload()) != fmt.Sprintf("%06d", got) || in[k].Peer != peer.local || o.Received && in[k].Received == 0 {
						t.Fatalf("%d: %q from %v", i, in[k].Payload(), in[k].Peer)
					}
					got++
				}
				if sent, err := s.Write(in[:n]); sent != n || err != nil {
					t.Fatalf("Write = %d, %v", sent, err)
				}
			}
			for got := 0; got < 2; {
				n, err := peer.Read(in)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
		}
		if err := s.SetReadDeadline(time.Now()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("SetReadDeadline: %v", err)
		}
		if _, err := s.Write([]Datagram{{Peer: netip.MustParseAddrPort("[::1]:1")}}); !errors.Is(err, ErrNoRoute) {
			t.Errorf("to another family: %v", err)
		}
	}
}

// Close ends reads that wait, whatever else goes on, and is the end of all calls. The descriptor is free then.
func TestOwnThreadCloses(t *testing.T) {
	for range 200 {
		s, peer := threadSocket(t, Options{}), hostSocket(t)
		fd := s.conn.(*threadConn).fd
		var all sync.WaitGroup
		all.Go(func() {
			in := []Datagram{{Buf: make([]byte, 10)}}
			for {
				n, err := s.Read(in)
				if Closed(err) {
					return
				}
				if n != 1 || err != nil || in[0].N != 6 {
					t.Errorf("Read = %d, %v: %q", n, err, in[0].Payload())
					return
				}
			}
		})
		all.Go(func() {
			for range 20 {
				_, _ = peer.Write(burstOf(1, s.local))
				_, _ = s.Write(burstOf(1, peer.local))
			}
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); !Closed(err) {
			t.Errorf("closed again: %v", err)
		}
		all.Wait()
		if _, err := s.Write(burstOf(1, peer.local)); !Closed(err) {
			t.Errorf("Write after Close: %v", err)
		}
		if name, err := unix.Getsockname(fd); err == nil && name.(*unix.SockaddrInet4).Port == int(s.local.Port()) {
			t.Error("the descriptor is still open")
		}
	}
}

// What waits for room does so until its deadline, and what has none does not wait.
func TestOwnThreadAwaitsRoom(t *testing.T) {
	s := threadSocket(t, Options{})
	never := func(uintptr) bool { return false }
	if err := s.conn.(*threadConn).Write(never); err == nil {
		t.Error("it waited without a deadline")
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.(*threadConn).Write(never); err == nil { // there is room all the time, which is not enough
		t.Error("it waited beyond its deadline")
	}
}

// A read goes on when it has waited in vain, and notices that the socket was closed meanwhile.
func TestOwnThreadLooksUp(t *testing.T) {
	c := threadSocket(t, Options{}).conn.(*threadConn)
	n := 0
	err := c.Read(func(fd uintptr) bool {
		limit, err := unix.GetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO)
		if err != nil || limit.Sec != 1 {
			t.Errorf("it waits for %v, %v", limit, err)
		}
		n++
		return n == 3
	})
	if err != nil || n != 3 {
		t.Errorf("%v after %d looks", err, n)
	}
	defer c.closed.Store(false) // so that it is closed in earnest
	err = c.Read(func(uintptr) bool {
		c.closed.Store(true)
		return false
	})
	if !Closed(err) {
		t.Errorf("closed meanwhile: %v", err)
	}
}
