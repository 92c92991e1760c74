package udp

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// share lets sockets of this user share the port that a socket has or will have.
func share(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

func (h host) listenGroup(addr netip.AddrPort, n int, o Options) ([]Conn, error) {
	first, err := h.open(addr, o, exclusive)
	if err != nil {
		return nil, err
	}
	group := []Conn{first}
	raw, err := first.conn.SyscallConn()
	if err == nil {
		err = onDescriptor(raw, share)
	}
	for err == nil && len(group) < n { // on an error the group is as large as it could be made
		var c *socket
		if c, err = h.open(first.LocalAddr(), o, share); err == nil {
			group = append(group, c)
		}
	}
	return group, nil
}
