package udp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
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
	waits bool                  // the descriptor blocks
	try   func(fd uintptr) bool // attempt, made once
	once  func(fd uintptr)      // the same, for one try

	mu    sync.Mutex // the socket takes one read at a time anyway
	batch *batch
	n     int  // how many to read, then how many were
	now   bool // do not wait for one
	err   error

	most  int            // headers at once
	space []byte         // for bursts, from the first read on
	came  *atomic.Uint64 // datagrams in bursts
	left  held           // of what was read, not handed out yet
}

func newBatchReader(s *socket, raw syscall.RawConn, told asked, most int) *batchReader {
	r := &batchReader{raw: raw, v4: s.local.Addr().Is4(), asked: told, drops: &s.drops, batch: newBatch(), most: most, came: &s.bursts.in}
	_, r.waits = raw.(*threadConn)
	r.try = r.attempt
	r.once = func(fd uintptr) { r.attempt(fd) }
	return r
}

func (r *batchReader) read(ds []Datagram) (int, error)  { return r.take(ds, false) }
func (r *batchReader) ready(ds []Datagram) (int, error) { return r.take(ds, true) }

func (r *batchReader) take(ds []Datagram, now bool) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.bursts {
		return r.takeBursts(ds, now)
	}
	space := min(len(ds), r.most)
	for i := range ds[:space] {
		r.batch.buffer(i, ds[i].Buf, len(ds[i].Buf))
		r.prepare(i)
	}
	err := r.receive(space, now)
	r.batch.forget(space)
	if err != nil {
		return 0, err
	}
	for i := range ds[:r.n] {
		r.fill(&ds[i], i)
	}
	return r.n, nil
}

// prepare makes header i ready to be filled.
func (r *batchReader) prepare(i int) {
	h := &r.batch.headers[i].Hdr
	h.Namelen = unix.SizeofSockaddrInet6
	h.SetControllen(0)
	if r.asked.any() {
		h.SetControllen(controlSpace)
	}
}

// receive fills the first n headers with what is there, and leaves how many in r.n.
func (r *batchReader) receive(n int, now bool) error {
	r.n, r.now = n, now
	err := r.raw.Read(r.try)
	if err == nil {
		err = r.err
	}
	if err != nil {
		r.n = 0
		return fmt.Errorf("udp: read: %w", err)
	}
	return nil
}

// attempt is called with the descriptor, and again when there is something to read if
// it returns false.
func (r *batchReader) attempt(fd uintptr) bool {
	flags := uintptr(unix.MSG_DONTWAIT)
	if r.waits && !r.now {
		flags = unix.MSG_WAITFORONE
	}
	n, err := r.batch.callWith(unix.SYS_RECVMMSG, fd, r.n, flags)
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
