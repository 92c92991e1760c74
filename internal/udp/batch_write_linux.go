package udp

import (
	"errors"
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

	bursts *burstCounter
	ends   [batchSize]int // of the burst in each header, among the datagrams
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
	bursts := w.bursts.able.Load()
	for {
		headers, n := w.compose(ds, bursts)
		if headers == 0 {
			return 0, nil
		}
		w.n = headers
		err := w.room.send(w.alone.conn, w.raw, w.try, &w.err)
		w.batch.forget(n)
		if err == nil {
			return w.count(w.n), nil
		}
		if w.ends[0] == 1 || !w.refused(err) {
			return 0, err
		}
		bursts = false
	}
}

// refused reports whether an error may be for a burst, and not for what is in it. A path that is too
// narrow for its datagrams concerns one peer; a device that cannot do what a burst takes, all of them.
func (w *batchWriter) refused(err error) bool {
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.EOPNOTSUPP) {
		w.bursts.able.Store(false)
		return true
	}
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMSGSIZE)
}

// compose makes headers of the first n of ds, as many as go into one call.
func (w *batchWriter) compose(ds []Datagram, bursts bool) (headers, n int) {
	for headers < batchSize && n < len(ds) && n < burstBuffers && w.address(headers, ds[n].Peer) {
		d, h := &ds[n], &w.batch.headers[headers].Hdr
		size := 1
		if bursts {
			size = burst(ds[n:min(len(ds), burstBuffers)])
		}
		h.Iov = &w.batch.buffers[n]
		h.SetIovlen(size)
		for i := n; i < n+size; i++ {
			w.batch.buffer(i, ds[i].Payload(), ds[i].N)
		}
		control := w.batch.controls[headers][:0]
		if from := w.alone.source(control, d.Local); from != nil {
			control = from
		}
		if size > 1 {
			control = appendSegment(control, d.N)
		}
		h.SetControllen(len(control))
		n += size
		w.ends[headers] = n
		headers++
	}
	return headers, n
}

// burst returns how many of ds, the first and those behind it, can leave in one buffer.
func burst(ds []Datagram) int {
	const most = 65_000 // bytes, headers left out
	first := &ds[0]
	n, bytes := 1, first.N
	for ; n < min(len(ds), burstSize) && first.N > 0; n++ {
		d := &ds[n]
		if d.Peer != first.Peer || d.Local != first.Local || d.N > first.N || d.N == 0 || bytes+d.N > most {
			break
		}
		if bytes += d.N; d.N < first.N { // it is the last
			return n + 1
		}
	}
	return n
}

// count returns how many datagrams the first headers held.
func (w *batchWriter) count(headers int) int {
	start := 0
	for _, end := range w.ends[:headers] {
		if end > start+1 {
			w.bursts.out.Add(uint64(end - start))
		}
		start = end
	}
	return start
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
