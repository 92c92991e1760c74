package udp

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// fionread asks a socket how many bytes it has to read.
const fionread = 0x4004667f

// readable reports whether a socket has something to read.
func readable(fd uintptr) bool {
	var there, n uint32
	err := windows.WSAIoctl(windows.Handle(fd), fionread, nil, 0,
		(*byte)(unsafe.Pointer(&there)), uint32(unsafe.Sizeof(there)), &n, nil, 0)
	return err == nil && there > 0
}
