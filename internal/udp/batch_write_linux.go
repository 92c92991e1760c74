package udp

import (
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchWriter sends many datagrams in one system call, and waits no longer for room
// than [writer] does.
type batchWriter struct {
	raw   syscall.RawConn
	alone *writer
	try   func(fd uintptr) bool // attempt, made once

	mu    sync.Mutex // the socket takes one write at a time anyway
	batch *batch
	n     int // how many to send, then how many were
	room  patience
	err   error
}

func (w *batchWriter) write(ds []Datagram) (int, error) {
	sent := 0
	for sent < len(ds) {
		n, err := w.writeSome(ds[sent:])
		sent += n
		if err != nil {
			return sent, fmt.Errorf("udp: write to %v: %w", ds[sent].Peer, err)
		}
		if n == 0 { // its zone has a name, or there is no way to it
			if _, err := w.alone.write(ds[sent : sent+1]); err != nil {
				return sent, err
			}
			sent++
		}
	}
	return sent, nil
}

// writeSome sends as many of ds as one system call takes. It returns 0 and no error for
// a first datagram that only the writer can send.
func (w *batchWriter) writeSome(ds []Datagram) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < min(len(ds), batchSize) && w.address(n, ds[n].Peer) {
		d, h := &ds[n], &w.batch.headers[n].Hdr
		w.batch.buffer(n, d.Payload(), d.N)
		h.SetControllen(len(w.alone.source(w.batch.controls[n][:0], d.Local)))
		n++
	}
	if n == 0 {
		return 0, nil
	}
	w.n = n
	err := w.room.send(w.alone.conn, w.raw, w.try, &w.err)
	w.batch.forget(n)
	if err != nil {
		return 0, err
	}
	return w.n, nil
}

// attempt is called with the descriptor, and again when there is room if it returns
// false.
func (w *batchWriter) attempt(fd uintptr) bool {
	n, err := w.batch.call(unix.SYS_SENDMMSG, fd, w.n)
	if w.err = err; err == nil {
		w.n = n
	}
	return w.room.enough(err)
}

// address lets datagram i go to a peer, or reports false if it cannot: if the peer is
// of the other family, or its zone has a name.
func (w *batchWriter) address(i int, to netip.AddrPort) bool {
	a := to.Addr()
	if !w.alone.routes(a) {
		return false
	}
	name, header := &w.batch.peers[i], &w.batch.headers[i].Hdr
	if w.alone.v4 {
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(name)) = unix.RawSockaddrInet4{
			Family: unix.AF_INET, Port: networkOrder(to.Port()), Addr: a.Unmap().As4(),
		}
		header.Namelen = unix.SizeofSockaddrInet4
		return true
	}
	scope := uint64(0)
	if zone := a.Zone(); zone != "" {
		var err error
		if scope, err = strconv.ParseUint(zone, 10, 32); err != nil {
			return false
		}
	}
	*name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: networkOrder(to.Port()), Addr: a.As16(), Scope_id: uint32(scope)}
	header.Namelen = unix.SizeofSockaddrInet6
	return true
}
