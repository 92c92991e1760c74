package udp

import (
	"fmt"
	"net"
	"net/netip"
)

// socket is a Conn of the operating system. One datagram a system call; the
// interface leaves room for the batch calls.
type socket struct {
	conn  *net.UDPConn
	out   *writer
	ahead ahead
	local netip.AddrPort
	asked bool // reads carry a control message with the address asked
}

func (s *socket) configure(o Options) (err error) {
	if s.out, err = newWriter(s.conn, s.local.Addr().Is4()); err != nil {
		return err
	}
	if o.ReadBuffer > 0 {
		if err := s.conn.SetReadBuffer(o.ReadBuffer); err != nil {
			return fmt.Errorf("set the read buffer to %d bytes: %w", o.ReadBuffer, err)
		}
	}
	if o.WriteBuffer > 0 {
		if err := s.conn.SetWriteBuffer(o.WriteBuffer); err != nil {
			return fmt.Errorf("set the write buffer to %d bytes: %w", o.WriteBuffer, err)
		}
	}
	if !o.AskedAddr || !s.local.Addr().IsUnspecified() || !canAskAddr {
		return nil
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return err
	}
	if err := control(raw, askAddr(s.local.Addr().Is4())); err != nil {
		return fmt.Errorf("ask for the local address of datagrams: %w", err)
	}
	s.asked = true
	return nil
}

func (s *socket) Read(ds []Datagram) (int, error) {
	if len(ds) == 0 {
		return 0, nil
	}
	d := &ds[0]
	d.Local = netip.Addr{}
	var err error
	if s.asked {
		var oob [controlSpace]byte
		var oobn int
		d.N, oobn, _, d.Peer, err = s.conn.ReadMsgUDPAddrPort(d.Buf, oob[:])
		if err == nil {
			d.Local = askedAddr(oob[:oobn])
		}
	} else {
		d.N, d.Peer, err = s.conn.ReadFromUDPAddrPort(d.Buf)
	}
	if err != nil {
		if !tooLong(err) {
			return 0, err
		}
		d.N = len(d.Buf)
	}
	return 1, nil
}

func (s *socket) Write(ds []Datagram) (int, error) {
	for i := range ds {
		if err := s.writeOne(&ds[i]); err != nil {
			return i, err
		}
	}
	return len(ds), nil
}

func (s *socket) writeOne(d *Datagram) error {
	var from netip.Addr
	if s.asked {
		from = d.Local
	}
	return s.out.write(d.Payload(), from, d.Peer)
}

func (s *socket) ReadAhead(ds []Datagram) int { return s.ahead.read(s.conn, ds) }

func (s *socket) LocalAddr() netip.AddrPort { return s.local }

func (s *socket) Close() error { return s.conn.Close() }
