package udp

import (
	"fmt"
	"net/netip"
)

// The range in which steering moves a client's source port: the dynamic ports.
const (
	FirstSteeringPort = 49152
	LastSteeringPort  = 65535
)

// ListenNext binds the socket that replaces the one at cur: same address, and
// the first free port after cur's in the steering range, wrapping once. A
// current port outside the range is followed by [FirstSteeringPort]. Port 0 is
// never bound and cur's own port is not tried, so a port comes back only when
// the whole range has been gone through.
//
// When no port is free the error is [ErrPortsTaken]; whatever the error, the
// caller still has its old socket and keeps it.
func ListenNext(s Stack, cur netip.AddrPort, o Options) (Conn, error) {
	port := nextPort(cur.Port())
	for range LastSteeringPort - FirstSteeringPort + 1 {
		if port == cur.Port() {
			break
		}
		c, err := s.Listen(netip.AddrPortFrom(cur.Addr(), port), o)
		if err == nil {
			return c, nil
		}
		if !InUse(err) {
			return nil, fmt.Errorf("udp: the next port after %d: %w", cur.Port(), err)
		}
		port = nextPort(port)
	}
	return nil, ErrPortsTaken
}

func nextPort(p uint16) uint16 {
	if p < FirstSteeringPort || p == LastSteeringPort {
		return FirstSteeringPort
	}
	return p + 1
}
