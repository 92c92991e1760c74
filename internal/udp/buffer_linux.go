package udp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadBufferSetting is the system's setting that bounds [Options.ReadBuffer], or "".
const ReadBufferSetting = "net.core.rmem_max"

// charged is what the kernel counts against a receive buffer for one datagram, its own
// structures included: 2304 bytes for one of 700 to 1200 bytes on loopback, 1280 and 832
// for shorter ones (Linux 6.18, by filling sockets that nobody reads), and for all where a
// network card has 2 KiB for each. TestReadBufferHolds measures the first.
const charged = 2304

// readBufferEach: the kernel gives twice what it is asked for.
const readBufferEach = charged / 2

// setReadBuffer goes over the system's limit (net.core.rmem_max) where we may.
func setReadBuffer(c descriptor, raw syscall.RawConn, size int) error {
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

// queued: what waits is counted as the size is. The option's number is the same on all architectures but some
// that Go does not know.
func queued(fd uintptr) int {
	const memInfo = 9 // numbers, of which the first is what waits to be read
	var info [memInfo]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return int(info[0] / 2)
}
