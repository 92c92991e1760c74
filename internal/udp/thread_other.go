//go:build !linux

package udp

import (
	"errors"
	"net"
)

// onThread is called on Linux only.
func onThread(*net.UDPConn) (descriptor, error) { return nil, errors.ErrUnsupported }
