//go:build unix

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// roomWait is how long a write waits for room in the send buffer. Traffic that is
// only dense leaves room sooner.
const roomWait = 5 * time.Millisecond

// writer sends the datagrams of one socket, and never waits for long. The
// standard library's way waits until the send buffer has room, which may be for
// seconds: what goes to a neighbor that is dead stays in it until the system
// gives up asking for its hardware address, and keeps out what is for the living.
type writer struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	v4   bool
	try  func(fd uintptr) bool // attempt, made once

	mu      sync.Mutex // the socket takes one write at a time anyway
	payload []byte
	control []byte // in space
	space   [controlSpace]byte
	to      unix.Sockaddr
	to4     unix.SockaddrInet4
	to6     unix.SockaddrInet6
	patient bool // an attempt waits for room
	full    bool // it was waited in vain, and nothing was sent since
	err     error
}

// newWriter returns the writer of a socket of one address family.
func newWriter(c *net.UDPConn, v4 bool) (*writer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &writer{conn: c, raw: raw, v4: v4}
	w.try = w.attempt
	return w, nil
}

// write sends one datagram, from an address of ours if that is valid.
func (w *writer) write(payload []byte, from netip.Addr, to netip.AddrPort) error {
	if to.Addr().Unmap().Is4() != w.v4 {
		return fmt.Errorf("udp: write to %v: %w", to, ErrNoRoute)
	}
	if to.Addr().Zone() != "" { // the standard library knows its number
		_, _, err := w.conn.WriteMsgUDPAddrPort(payload, w.source(nil, from), to)
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.payload, w.control = payload, w.source(w.space[:0], from)
	w.address(to)
	err := w.send()
	w.payload = nil
	if errors.Is(err, unix.EAGAIN) {
		err = errFull
	}
	if err != nil {
		return fmt.Errorf("udp: write to %v: %w", to, err)
	}
	w.full = false
	return nil
}

// source appends the control message that makes a datagram leave from an address.
func (w *writer) source(b []byte, from netip.Addr) []byte {
	if !from.IsValid() {
		return nil
	}
	return appendSource(b, from)
}

// send makes one attempt, and another with patience if there was no room. While
// nobody gets anything sent nobody waits again.
func (w *writer) send() error {
	w.patient = false
	if err := w.raw.Write(w.try); err != nil {
		return err
	}
	if w.full || !errors.Is(w.err, unix.EAGAIN) {
		return w.err
	}
	w.patient = true
	if err := w.conn.SetWriteDeadline(time.Now().Add(roomWait)); err != nil {
		return err
	}
	err := w.raw.Write(w.try)
	if err := w.conn.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.full = true
		return unix.EAGAIN
	}
	if err != nil {
		return err
	}
	return w.err
}

// attempt is called with the descriptor and makes the system call. It returns
// false if it is to be called again when there is room.
func (w *writer) attempt(fd uintptr) bool {
	for {
		_, w.err = unix.SendmsgN(int(fd), w.payload, w.control, w.to, 0)
		if !errors.Is(w.err, unix.EINTR) {
			return !w.patient || !errors.Is(w.err, unix.EAGAIN)
		}
	}
}

func (w *writer) address(to netip.AddrPort) {
	if w.v4 {
		w.to4 = unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()}
		w.to = &w.to4
		return
	}
	w.to6 = unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	w.to = &w.to6
}
