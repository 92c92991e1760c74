//go:build !linux

package udp

import (
	"net"
	"syscall"
)

func setReadBuffer(c *net.UDPConn, _ syscall.RawConn, size int) error { return c.SetReadBuffer(size) }

func readBuffer(uintptr) int { return 0 }
