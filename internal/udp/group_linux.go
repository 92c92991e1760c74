package udp

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// share lets sockets of this user share the port that a socket has or will have.
func share(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

func (h host) listenGroup(addr netip.AddrPort, n int, o Options) ([]Conn, error) {
	together := o.ReadBuffer
	o.ReadBuffer = 0
	first, err := h.open(addr, o, exclusive)
	if err != nil {
		return nil, err
	}
	sockets := []*socket{first}
	raw, err := first.conn.SyscallConn()
	if err == nil {
		err = onDescriptor(raw, share)
	}
	for err == nil && len(sockets) < n { // on an error the group is as large as it could be made
		var c *socket
		if c, err = h.open(first.LocalAddr(), o, share); err == nil {
			sockets = append(sockets, c)
		}
	}
	return divide(sockets, together)
}

// divide gives each socket its part of a receive buffer; 0 leaves all as they are.
func divide(sockets []*socket, together int) ([]Conn, error) {
	group := make([]Conn, 0, len(sockets))
	for _, s := range sockets {
		group = append(group, s)
	}
	for _, s := range sockets {
		raw, err := s.conn.SyscallConn()
		if err == nil {
			err = s.setReadBuffer(raw, together/len(sockets))
		}
		if err != nil {
			for _, c := range group {
				_ = c.Close()
			}
			return nil, fmt.Errorf("udp: listen %v: %w", s.local, err)
		}
	}
	return group, nil
}
