//go:build !unix

package udp

import "net"

// writer sends the datagrams of one socket.
type writer struct{ conn *net.UDPConn }

func newWriter(c *net.UDPConn, _, _ bool) (*writer, error) { return &writer{c}, nil }

func (w *writer) write(ds []Datagram) (int, error) {
	for i := range ds {
		if _, err := w.conn.WriteToUDPAddrPort(ds[i].Payload(), ds[i].Peer); err != nil {
			return i, err
		}
	}
	return len(ds), nil
}
