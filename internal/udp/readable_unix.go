//go:build unix

package udp

import "golang.org/x/sys/unix"

// readable reports whether a socket has something to read.
func readable(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds[:], 0)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}
