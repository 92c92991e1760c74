//go:build !unix

package udp

import (
	"net"
	"syscall"
)

// writer sends the datagrams of one socket.
type writer struct{ conn *net.UDPConn }

func newWriter(c descriptor, _ syscall.RawConn, _, _ bool) *writer {
	plain, _ := c.(*net.UDPConn)
	return &writer{plain}
}

func (w *writer) write(ds []Datagram) (int, error) {
	for i := range ds {
		if _, err := w.conn.WriteToUDPAddrPort(ds[i].Payload(), ds[i].Peer); err != nil {
			return i, err
		}
	}
	return len(ds), nil
}
