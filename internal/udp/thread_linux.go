package udp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadConn is the descriptor of a socket whose reads wait in the system: the runtime's poller, which
// takes several system calls for each wait, knows nothing of it. The descriptor itself blocks, so what
// is not to wait says so with each call. A read that waits looks up once a second, so that Close ends it
// even where the system does not wake it.
type threadConn struct {
	fd       int
	closed   atomic.Bool
	deadline atomic.Pointer[time.Time] // of writes, or nil

	mu sync.RWMutex // held for reading while a call uses the descriptor, and for writing to close it
}

// onThread takes a socket out of the poller, and owns it.
func onThread(c *net.UDPConn) (*threadConn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	t := &threadConn{}
	err = onDescriptor(raw, func(fd uintptr) (err error) {
		t.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take the socket: %w", err)
	}
	look := unix.Timeval{Sec: 1}
	err = errors.Join(c.Close(), unix.SetNonblock(t.fd, false), unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &look))
	if err != nil {
		_ = unix.Close(t.fd)
		return nil, fmt.Errorf("take the socket: %w", err)
	}
	return t, nil
}

// SyscallConn returns the connection itself.
func (t *threadConn) SyscallConn() (syscall.RawConn, error) { return t, nil }

// Control calls f with the descriptor.
func (t *threadConn) Control(f func(fd uintptr)) error {
	return t.Read(func(fd uintptr) bool {
		f(fd)
		return true
	})
}

// Read calls f, which waits by itself for about a second, until it returns true.
func (t *threadConn) Read(f func(fd uintptr) bool) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for !t.closed.Load() {
		if f(uintptr(t.fd)) && !t.closed.Load() { // what Close ended has read nothing
			return nil
		}
	}
	return net.ErrClosed
}

// Write calls f until it returns true, whenever there may be room.
func (t *threadConn) Write(f func(fd uintptr) bool) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for !t.closed.Load() {
		if f(uintptr(t.fd)) {
			return nil
		}
		if err := t.awaitRoom(); err != nil {
			return err
		}
	}
	return net.ErrClosed
}

// awaitRoom returns when there is room, or when the deadline has passed. Who waits for room has a deadline.
func (t *threadConn) awaitRoom() error {
	var left time.Duration
	if at := t.deadline.Load(); at != nil {
		left = time.Until(*at)
	}
	if left <= 0 {
		return os.ErrDeadlineExceeded
	}
	timeout := unix.NsecToTimespec(int64(left))
	fds := [1]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLOUT}}
	_, _, errno := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), uintptr(len(fds)), uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		return fmt.Errorf("wait for room: %w", errno)
	}
	return nil
}

// nap waits in the system. A timer of the runtime's would hand the thread over and back.
func (t *threadConn) nap(d time.Duration) {
	const exact = 1 // ns by which the system may be late to wake this thread, to wake several at once
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, exact, 0, 0, 0)
	span := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&span, nil) // a signal may end it early
}

// SetReadDeadline is not to be had: nothing ends a read but a datagram, and Close.
func (t *threadConn) SetReadDeadline(time.Time) error { return errors.ErrUnsupported }

// SetWriteDeadline makes writes that wait for room fail at a time; the zero time lets none wait.
func (t *threadConn) SetWriteDeadline(at time.Time) error {
	if at.IsZero() {
		t.deadline.Store(nil)
		return nil
	}
	t.deadline.Store(&at)
	return nil
}

// SetReadBuffer asks for a receive buffer of some bytes.
func (t *threadConn) SetReadBuffer(bytes int) error {
	return onDescriptor(t, func(fd uintptr) error {
		return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
	})
}

// SetWriteBuffer asks for a send buffer of some bytes.
func (t *threadConn) SetWriteBuffer(bytes int) error {
	return onDescriptor(t, func(fd uintptr) error {
		return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, bytes)
	})
}

// Close ends the calls that wait, and returns when they have ended.
func (t *threadConn) Close() error {
	if t.closed.Swap(true) {
		return net.ErrClosed
	}
	_ = unix.Shutdown(t.fd, unix.SHUT_RD) // which wakes readers, and says that nothing is connected
	t.mu.Lock()
	defer t.mu.Unlock()
	return unix.Close(t.fd)
}
