//go:build darwin || freebsd

package udp

import "golang.org/x/sys/unix"

// ReadBufferSetting is the system's setting that bounds [Options.ReadBuffer], or "".
const ReadBufferSetting = "kern.ipc.maxsockbuf"

func readBuffer(fd uintptr) int {
	size, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return size
}
