//go:build unix

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// writer sends one datagram a system call.
type writer struct {
	conn  descriptor
	plain *net.UDPConn // conn, or nil
	raw   syscall.RawConn
	v4    bool
	asked bool                  // a datagram may name the address that it leaves from
	try   func(fd uintptr) bool // attempt, made once

	mu      sync.Mutex // the socket takes one write at a time anyway
	payload []byte
	control []byte // in space
	space   [controlSpace]byte
	to      unix.Sockaddr
	to4     unix.SockaddrInet4
	to6     unix.SockaddrInet6
	room    patience
	err     error

	named  string // the zone that was looked up last
	number uint32 // its
	renew  time.Time
}

// newWriter returns the writer of a socket of one address family.
func newWriter(c descriptor, raw syscall.RawConn, v4, asked bool) *writer {
	w := &writer{conn: c, raw: raw, v4: v4, asked: asked}
	w.plain, _ = c.(*net.UDPConn)
	w.try = w.attempt
	return w
}

func (w *writer) write(ds []Datagram) (int, error) {
	for i := range ds {
		if err := w.writeOne(&ds[i]); err != nil {
			return i, fmt.Errorf("udp: write to %v: %w", ds[i].Peer, err)
		}
	}
	return len(ds), nil
}

func (w *writer) writeOne(d *Datagram) error {
	if !w.routes(d.Peer.Addr()) {
		return ErrNoRoute
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	zone, err := w.zone(d.Peer.Addr().Zone())
	if err != nil {
		return err
	}
	w.payload, w.control = d.Payload(), w.source(w.space[:0], d.Local)
	w.address(d.Peer, zone)
	err = w.room.send(w.conn, w.raw, w.try, &w.err)
	w.payload = nil
	return err
}

// zoneKept is how long the number of a zone's name is taken to be the same.
const zoneKept = time.Minute

// zone returns the number of a zone. The standard library's way to send to a name would be to wait for room as
// long as it takes, see [patience].
func (w *writer) zone(name string) (uint32, error) {
	if name == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), nil
	}
	if w.plain == nil {
		return 0, ErrNoRoute
	}
	now := time.Now()
	if name != w.named || now.After(w.renew) {
		link, err := net.InterfaceByName(name)
		if err != nil {
			return 0, fmt.Errorf("%w: zone %s: %w", ErrNoRoute, name, err)
		}
		w.named, w.number, w.renew = name, uint32(link.Index), now.Add(zoneKept)
	}
	return w.number, nil
}

// routes reports whether an address is of the socket's family.
func (w *writer) routes(a netip.Addr) bool { return a.Unmap().Is4() == w.v4 }

// source appends the control message that makes a datagram leave from an address.
func (w *writer) source(b []byte, from netip.Addr) []byte {
	if !w.asked || !from.IsValid() {
		return nil
	}
	return appendSource(b, from)
}

// attempt is called with the descriptor and makes the system call. It returns false if
// it is to be called again when there is room.
func (w *writer) attempt(fd uintptr) bool {
	for {
		_, w.err = unix.SendmsgN(int(fd), w.payload, w.control, w.to, unix.MSG_DONTWAIT)
		if !errors.Is(w.err, unix.EINTR) {
			return w.room.enough(w.err)
		}
	}
}

func (w *writer) address(to netip.AddrPort, zone uint32) {
	if w.v4 {
		w.to4 = unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()}
		w.to = &w.to4
		return
	}
	w.to6 = unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16(), ZoneId: zone}
	w.to = &w.to6
}
