//go:build !linux

package udp

import (
	"syscall"
)

// readBufferEach has room for a datagram of 1200 bytes, its sender's address, and what
// systems round up to.
const readBufferEach = 2048

// leastReadBuffer is what every system gives.
const leastReadBuffer = 64 << 10

// setReadBuffer: systems such as macOS refuse what is over their limit, and are asked for
// half of it then, and so on.
func setReadBuffer(c descriptor, _ syscall.RawConn, size int) error {
	for {
		err := c.SetReadBuffer(size)
		if err == nil || size <= leastReadBuffer {
			return err
		}
		size /= 2
	}
}

// queued is not told.
func queued(uintptr) int { return 0 }
