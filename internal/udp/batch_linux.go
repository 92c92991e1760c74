package udp

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSize is the most datagrams that one system call moves. More gains little: the
// call itself is a small part of the cost of this many datagrams.
const batchSize = 32

// burstBuffers is the most datagrams that one system call sends in bursts, and burstSize the most in one
// of them: old systems take no more.
const (
	burstBuffers = 128
	burstSize    = 64
)

// batch is the kernel's view of some datagrams. It points into itself and into the
// callers' buffers, so it lives on the heap and is not copied.
type batch struct {
	headers  [batchSize]unix.Mmsghdr
	buffers  [burstBuffers]unix.Iovec
	peers    [batchSize]unix.RawSockaddrInet6 // or unix.RawSockaddrInet4 at the same place
	controls [batchSize][controlSpace]byte
}

func newBatch() *batch {
	b := new(batch)
	for i := range b.headers {
		h := &b.headers[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&b.peers[i]))
		h.Iov = &b.buffers[i]
		h.SetIovlen(1)
		h.Control = &b.controls[i][0]
	}
	return b
}

// buffer lets datagram i be in n bytes of buf.
func (b *batch) buffer(i int, buf []byte, n int) {
	b.buffers[i].Base = unsafe.SliceData(buf)
	b.buffers[i].SetLen(n)
}

// forget drops the callers' buffers, which are not ours to keep alive.
func (b *batch) forget(n int) {
	for i := range b.buffers[:n] {
		b.buffers[i].Base = nil
	}
}

// call makes the system call for the first n datagrams, without waiting. It returns
// how many were moved; 0 only with an error.
func (b *batch) call(number, fd uintptr, n int) (int, error) {
	return b.callWith(number, fd, n, unix.MSG_DONTWAIT)
}

func (b *batch) callWith(number, fd uintptr, n int, flags uintptr) (int, error) {
	for {
		moved, _, errno := unix.Syscall6(number, fd, uintptr(unsafe.Pointer(&b.headers)), uintptr(n), flags, 0, 0)
		switch errno {
		case 0:
			return int(moved), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// canBatch asks the system to move no datagrams at once. Old systems do not know how,
// and some sandboxes do not allow it.
func canBatch(raw syscall.RawConn) bool {
	err := onDescriptor(raw, func(fd uintptr) error {
		b := newBatch()
		_, in := b.call(unix.SYS_RECVMMSG, fd, 0)
		_, out := b.call(unix.SYS_SENDMMSG, fd, 0)
		return errors.Join(in, out)
	})
	return err == nil
}

// newBatches returns the two directions of a socket. alone sends what the batch cannot.
func newBatches(s *socket, raw syscall.RawConn, alone *writer, told asked) (source, sink) {
	most := batchSize
	if told.bursts && told.buffers > 0 {
		most = min(most, told.buffers)
	}
	in := newBatchReader(s, raw, told, most)
	if in.waits {
		s.ahead.bursts = func([]Datagram) int { return 0 }
	} else if told.bursts {
		const few = 8 // each of them may be a burst
		aside := newBatchReader(s, raw, told, min(few, most))
		aside.drops = new(dropCounter) // the other one counts
		s.ahead.bursts = aside.ahead
	}
	out := &batchWriter{raw: raw, alone: alone, batch: newBatch(), bursts: &s.bursts}
	out.try = out.attempt
	return in, out
}
