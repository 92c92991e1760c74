package dnszone

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	maxQuestion  = 4096      // bytes; a question has a few dozen
	maxDatagram  = 1<<16 - 1 // bytes; where there is less room some systems (Windows) fail the read
	maxUDPErrors = 100       // failed reads in a row that end the server
)

// serveUDP reads and answers, one datagram at a time: an answer takes some
// microseconds and never waits for anything.
func (s *Server) serveUDP() error {
	b := make([]byte, maxDatagram)
	for failures := 0; ; {
		n, p, err := s.udp.read(b)
		if err != nil {
			// Some systems report here that an earlier answer did not arrive.
			if failures++; errors.Is(err, net.ErrClosed) || failures == maxUDPErrors {
				return s.fail("read UDP", err)
			}
			continue
		}
		failures = 0
		s.stats.udp.Add(1)
		if out := s.limited(b[:n], p.from.Addr()); out == nil {
			continue
		} else if err := s.udp.write(out, p); err != nil {
			s.stats.sendError.Add(1)
		}
	}
}

// limited answers a datagram as far as its sender's share goes.
func (s *Server) limited(b []byte, from netip.Addr) []byte {
	if len(b) < headerSize || len(b) > maxQuestion || b[2]&flagQR != 0 {
		s.stats.ignored.Add(1)
		return nil
	}
	switch s.limiter.take(from, time.Now()) {
	case withhold:
		s.stats.withheld.Add(1)
		return nil
	case slipOne:
		s.stats.slipped.Add(1)
		return slip(b)
	}
	out := s.zone.respond(b, true)
	if out == nil {
		s.stats.ignored.Add(1)
	}
	return out
}

// udpSocket answers from the address that was asked, which on a wildcard socket
// has to be told to the system with every datagram.
type udpSocket struct {
	conn     *net.UDPConn
	wildcard bool
	oob      []byte
}

// peer is who asked, and at which of our addresses.
type peer struct {
	from  netip.AddrPort
	asked net.IP // nil: the only one
}

func listenUDP(a *net.UDPAddr) (*udpSocket, error) {
	conn, err := net.ListenUDP("udp"+family(a.IP), a)
	if err != nil {
		return nil, err
	}
	u := &udpSocket{conn: conn}
	if a.IP == nil || a.IP.IsUnspecified() {
		// One of the two applies; where neither does (Windows), the system
		// chooses the source.
		err6 := ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst, true)
		err4 := ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
		u.wildcard = err6 == nil || err4 == nil
		u.oob = make([]byte, len(ipv6.NewControlMessage(ipv6.FlagDst))+len(ipv4.NewControlMessage(ipv4.FlagDst)))
	}
	return u, nil
}

// read is for one goroutine.
func (u *udpSocket) read(b []byte) (int, peer, error) {
	n, oobn, _, from, err := u.conn.ReadMsgUDPAddrPort(b, u.oob)
	p := peer{from: from}
	if err == nil && u.wildcard {
		p.asked = destination(u.oob[:oobn])
	}
	return n, p, err
}

func (u *udpSocket) write(b []byte, p peer) error {
	var oob []byte
	switch ip4 := p.asked.To4(); {
	case ip4 != nil:
		oob = (&ipv4.ControlMessage{Src: ip4}).Marshal()
	case p.asked != nil:
		oob = (&ipv6.ControlMessage{Src: p.asked}).Marshal()
	}
	_, _, err := u.conn.WriteMsgUDPAddrPort(b, oob, p.from)
	return err
}

func (u *udpSocket) close() error { return u.conn.Close() }

// destination reads the address that a datagram was sent to; an IPv4 one comes
// mapped on a socket of both families.
func destination(oob []byte) net.IP {
	var m6 ipv6.ControlMessage
	if m6.Parse(oob) == nil && m6.Dst != nil {
		return m6.Dst
	}
	var m4 ipv4.ControlMessage
	if m4.Parse(oob) == nil && m4.Dst != nil {
		return m4.Dst
	}
	return nil
}
