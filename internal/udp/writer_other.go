//go:build !unix

package udp

import (
	"net"
	"net/netip"
)

// writer sends the datagrams of one socket.
type writer struct{ conn *net.UDPConn }

func newWriter(c *net.UDPConn, _ bool) (*writer, error) { return &writer{c}, nil }

func (w *writer) write(payload []byte, _ netip.Addr, to netip.AddrPort) error {
	_, err := w.conn.WriteToUDPAddrPort(payload, to)
	return err
}
