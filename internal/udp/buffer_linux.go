package udp

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// setReadBuffer goes over the system's limit (net.core.rmem_max) where we may.
func setReadBuffer(c *net.UDPConn, raw syscall.RawConn, size int) error {
	err := onDescriptor(raw, func(fd uintptr) error {
		return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size)
	})
	if err != nil {
		return c.SetReadBuffer(size)
	}
	return nil
}

// readBuffer: the kernel gives, and tells, twice what it is asked for, as it counts its
// own structures too.
func readBuffer(fd uintptr) int {
	size, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return size / 2
}
