package udp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchReader reads what is there, up to a batch, in one system call, and waits in the
// runtime's poller while nothing is: one datagram alone waits for no other.
type batchReader struct {
	raw   syscall.RawConn
	v4    bool
	asked asked
	drops *dropCounter
	try   func(fd uintptr) bool // attempt, made once

	mu    sync.Mutex // the socket takes one read at a time anyway
	batch *batch
	n     int  // how many to read, then how many were
	now   bool // do not wait for one
	err   error
}

func (r *batchReader) read(ds []Datagram) (int, error)  { return r.take(ds, false) }
func (r *batchReader) ready(ds []Datagram) (int, error) { return r.take(ds, true) }

func (r *batchReader) take(ds []Datagram, now bool) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	space := min(len(ds), batchSize)
	for i := range ds[:space] {
		h := &r.batch.headers[i].Hdr
		r.batch.buffer(i, ds[i].Buf, len(ds[i].Buf))
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(0)
		if r.asked.any() {
			h.SetControllen(controlSpace)
		}
	}
	r.n, r.now = space, now
	err := r.raw.Read(r.try)
	r.batch.forget(space)
	if err == nil {
		err = r.err
	}
	if err != nil {
		return 0, fmt.Errorf("udp: read: %w", err)
	}
	for i := range ds[:r.n] {
		r.fill(&ds[i], i)
	}
	return r.n, nil
}

// attempt is called with the descriptor, and again when there is something to read if
// it returns false.
func (r *batchReader) attempt(fd uintptr) bool {
	n, err := r.batch.call(unix.SYS_RECVMMSG, fd, r.n)
	if errors.Is(err, unix.EAGAIN) {
		if !r.now {
			return false
		}
		n, err = 0, nil
	}
	r.n, r.err = n, err
	return true
}

func (r *batchReader) fill(d *Datagram, i int) {
	h := &r.batch.headers[i]
	d.N = int(h.Len)
	d.Peer = r.peer(i)
	d.take(readControl(r.batch.controls[i][:h.Hdr.Controllen]), r.drops)
}

func (r *batchReader) peer(i int) netip.AddrPort {
	name := &r.batch.peers[i]
	if r.v4 {
		name := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), networkOrder(name.Port))
	}
	a := netip.AddrFrom16(name.Addr)
	if name.Scope_id != 0 {
		a = a.WithZone(strconv.FormatUint(uint64(name.Scope_id), 10))
	}
	return netip.AddrPortFrom(a, networkOrder(name.Port))
}

// networkOrder converts a port between the machine's byte order and the network's.
func networkOrder(port uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], port)
	return binary.BigEndian.Uint16(b[:])
}
