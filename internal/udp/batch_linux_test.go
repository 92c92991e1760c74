package udp

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func hostSocket(t *testing.T) *socket {
	t.Helper()
	s, err := host{}.open(netip.MustParseAddrPort("127.0.0.1:0"), Options{}, exclusive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Datagrams written at once share system calls, as many as go into one.
func TestWriteSharesCalls(t *testing.T) {
	s := hostSocket(t)
	w, ok := s.out.(*batchWriter)
	if !ok {
		t.Skip("the system does not batch")
	}
	calls, try := 0, w.try
	w.try = func(fd uintptr) bool { calls++; return try(fd) }
	ds := make([]Datagram, 2*batchSize+1)
	for i := range ds {
		ds[i] = Datagram{Buf: []byte("x"), N: 1, Peer: s.local}
	}
	if n, err := s.Write(ds); n != len(ds) || err != nil || calls != 3 {
		t.Errorf("Write = %d, %v in %d calls", n, err, calls)
	}
}

// An error of reading is told, and passes.
func TestReadTellsErrors(t *testing.T) {
	s := hostSocket(t)
	raw, err := s.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	hear := func(fd uintptr) error { return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, 1) }
	if err := onDescriptor(raw, hear); err != nil {
		t.Fatal(err)
	}
	gone := hostSocket(t)
	_ = gone.Close()
	if _, err := s.Write([]Datagram{{Buf: []byte("x"), N: 1, Peer: gone.local}}); err != nil {
		t.Fatal(err)
	}
	in := []Datagram{{Buf: make([]byte, 10)}}
	if n, err := s.Read(in); n != 0 || !errors.Is(err, unix.ECONNREFUSED) || Closed(err) {
		t.Errorf("Read = %d, %v", n, err)
	}
	if _, err := s.Write([]Datagram{{Buf: []byte("x"), N: 1, Peer: s.local}}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(in); n != 1 || err != nil {
		t.Errorf("then Read = %d, %v", n, err)
	}
}

// fullConn is a descriptor whose wait for room always ends in vain.
type fullConn struct {
	syscall.RawConn
	waits int
}

func (c *fullConn) Write(attempt func(uintptr) bool) error {
	if attempt(0) {
		return nil
	}
	c.waits++
	return os.ErrDeadlineExceeded
}

// Once it was waited for room in vain, nobody waits until something was sent.
func TestPatience(t *testing.T) {
	s := hostSocket(t)
	var p patience
	var failed error
	raw := &fullConn{}
	for i, step := range []struct {
		outcome error
		waits   int // in all
	}{{unix.EAGAIN, 1}, {unix.EAGAIN, 1}, {unix.EPERM, 1}, {unix.EAGAIN, 1}, {nil, 1}, {unix.EAGAIN, 2}} {
		attempt := func(uintptr) bool { failed = step.outcome; return p.enough(failed) }
		err := p.send(s.conn, raw, attempt, &failed)
		want := step.outcome
		if errors.Is(want, unix.EAGAIN) {
			want = errFull
		}
		if !errors.Is(err, want) || raw.waits != step.waits {
			t.Errorf("step %d: %v after %d waits, want %v after %d", i, err, raw.waits, want, step.waits)
		}
	}
}
