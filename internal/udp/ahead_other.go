//go:build !unix

package udp

import "net"

// ahead cannot read past who waits in Read here.
type ahead struct{}

func (*ahead) read(*net.UDPConn, []Datagram) int { return 0 }
