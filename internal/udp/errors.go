package udp

import (
	"errors"
	"net"
)

// ErrPortsTaken is returned by [ListenNext] when every port that steering may
// use is occupied.
var ErrPortsTaken = errors.New("udp: every port from 49152 to 65535 is taken")

// ErrNoRoute is what a socket returns for a datagram to an
// address of the other family, or without a source address on this host.
var ErrNoRoute = errors.New("udp: no route to the peer")

// ErrNotLocal is returned when a [NetworkHost] is asked to bind an address
// that is not one of its own.
var ErrNotLocal = errors.New("udp: not an address of this host")

// errFull is what a write returns that found no room in the system's buffer.
var errFull = errors.New("the socket's send buffer is full")

var errInUse = errors.New("udp: address already in use")

// Closed reports whether err means that the socket itself has been closed, so
// that no later call on it can succeed. Every other error of a [Conn] concerns
// one call only: an ICMP message that some systems report on the socket, a
// full queue, a firewall's refusal.
func Closed(err error) bool { return errors.Is(err, net.ErrClosed) }

// InUse reports whether err of [Stack.Listen] means that the port cannot be
// had because someone holds it.
func InUse(err error) bool {
	return errors.Is(err, errInUse) || errors.Is(err, errnoInUse) || heldBack(err)
}
