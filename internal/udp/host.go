package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Host returns the stack of the machine that the program runs on.
func Host() Stack { return host{} }

type host struct{}

func (h host) Listen(addr netip.AddrPort, o Options) (Conn, error) {
	s, err := h.open(addr, o, exclusive)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// open binds a socket of which prepare has set options before.
func (host) open(addr netip.AddrPort, o Options, prepare func(fd uintptr) error) (*socket, error) {
	if !addr.Addr().IsValid() {
		return nil, fmt.Errorf("udp: listen: %v is not an address and port", addr)
	}
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return onDescriptor(raw, func(fd uintptr) error {
			deaf(fd)
			return prepare(fd)
		})
	}}
	pc, err := lc.ListenPacket(context.Background(), family(addr.Addr()), addr.String())
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	uc, ok := pc.(*net.UDPConn)
	if !ok {
		pc.Close()
		return nil, fmt.Errorf("udp: listen %v: the system gave a %T", addr, pc)
	}
	s := &socket{conn: uc, local: boundAddr(uc, addr)}
	if err := s.configure(o); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("udp: listen %v: %w", addr, err)
	}
	return s, nil
}

// family names the network so that the standard library opens a socket of
// exactly this address family ("udp6" sets IPV6_V6ONLY).
func family(a netip.Addr) string {
	if a.Is4() {
		return "udp4"
	}
	return "udp6"
}

// boundAddr is the address asked for with the port that the system chose.
func boundAddr(c *net.UDPConn, asked netip.AddrPort) netip.AddrPort {
	if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
		return netip.AddrPortFrom(asked.Addr(), a.AddrPort().Port())
	}
	return asked
}

// onDescriptor runs f on the descriptor behind raw.
func onDescriptor(raw syscall.RawConn, f func(fd uintptr) error) error {
	var inner error
	err := raw.Control(func(fd uintptr) { inner = f(fd) })
	return errors.Join(err, inner)
}
