package udp

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

const errnoInUse = windows.WSAEADDRINUSE

// optExclusiveAddrUse is SO_EXCLUSIVEADDRUSE: the complement of SO_REUSEADDR.
const optExclusiveAddrUse = ^windows.SO_REUSEADDR

// exclusive keeps another process from binding a specific local address on the
// port of our wildcard socket and so taking its datagrams.
func exclusive(fd uintptr) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, optExclusiveAddrUse, 1)
}

// deaf keeps ICMP messages about datagrams sent from failing the reads of the
// socket, which is not connected and has other peers. What it cannot do costs an
// error that passes.
func deaf(fd uintptr) {
	var off, n uint32
	_ = windows.WSAIoctl(windows.Handle(fd), windows.SIO_UDP_CONNRESET,
		(*byte)(unsafe.Pointer(&off)), uint32(unsafe.Sizeof(off)), nil, 0, &n, nil, 0)
}

// heldBack: an exclusively bound port, or one of a reserved range, refuses
// with "access denied".
func heldBack(err error) bool { return errors.Is(err, windows.WSAEACCES) }

// tooLong: Windows reports a datagram longer than the buffer as an error,
// after having filled the buffer.
func tooLong(err error) bool { return errors.Is(err, windows.WSAEMSGSIZE) }
