// Package udp is the floor under Weir's client and server: unconnected UDP
// sockets behind one small interface, with an in-memory twin for tests.
//
// A [Stack] opens sockets. [Host] is this machine's; a [NetworkHost] is a
// machine on a [Network], a packet network that lives in memory, where every
// delay, loss and duplicate is the test's to choose and time may be virtual
// (testing/synctest). A [Conn] moves [Datagram] values in batches: on Linux those
// that are there share a system call (recvmmsg, sendmmsg), and nothing waits for a
// batch to fill.
//
// A datagram read from a wildcard socket names the local address that it was
// sent to, where the system can tell (Linux), and a datagram written may name
// the local address that it is to leave from: this is how an answer comes from
// the address that was asked.
//
// [ListenNext] opens the socket that steering moves to.
package udp

import (
	"net/netip"
	"time"
)

// A Stack opens UDP sockets. It is safe for concurrent use.
type Stack interface {
	// Listen binds a socket to addr. The address family is addr's own: an
	// IPv6 socket takes no IPv4 datagrams, the unspecified address binds
	// every local address of its family, and port 0 lets the system choose.
	// [InUse] tells whether an error means that the port is taken.
	Listen(addr netip.AddrPort, o Options) (Conn, error)
}

// Options are the settings of a socket. The zero value is what a client uses.
type Options struct {
	// AskedAddr asks for [Datagram.Local] on datagrams read from a socket
	// that is bound to an unspecified address. A server needs it.
	AskedAddr bool

	// Received asks for [Datagram.Received], and CountDrops for [Conn.Dropped].
	Received, CountDrops bool

	// Bursts lets datagrams of one flow come and go many in one buffer of the system's, where it can
	// do that (Linux: UDP_GRO, UDP_SEGMENT). What is written leaves so if it stands together, goes the
	// same way, and has one size, but for the last, which may be shorter. Nothing waits for company.
	// Where the system refuses, datagrams leave one by one from then on.
	Bursts bool

	// BurstBuffers is how many bursts one system call reads at most, each of which takes 64 KB of memory:
	// 0 is as many as lone datagrams. With a few peers a few are enough.
	BurstBuffers int

	// OwnThread has calls wait in the system, where it can do that (Linux, unless NoBatch is set), and not in the
	// runtime's poller, which is the cheaper for a goroutine that does nothing else than move datagrams: each
	// that waits holds a thread. Then SetReadDeadline is an error, ReadAhead reads nothing, and peers whose zone has
	// a name have no route.
	OwnThread bool

	// NoBatch moves one datagram a system call, also where many could share one.
	NoBatch bool

	// ReadBuffer and WriteBuffer are the sizes in bytes of the kernel's
	// buffers; 0 leaves the system's default. The kernel may round them or,
	// without an error, give less.
	ReadBuffer, WriteBuffer int
}

// A Conn is one unconnected UDP socket. Its methods are safe for concurrent
// use, and closing it ends the calls that wait.
type Conn interface {
	// Read waits until a datagram is there and reads at least one and at most
	// len(ds), into Buf, setting N, Peer, Local and Received of each. It takes
	// what is there and waits for no more. It returns how many it read; the
	// error is nil if that is not 0. An error for which [Closed] is false is
	// passing: the socket goes on.
	//
	// A datagram longer than its Buf arrives cut to len(Buf), so that a
	// buffer one byte longer than the largest good datagram shows it.
	Read(ds []Datagram) (int, error)

	// ReadReady reads as Read does, and does not wait: it returns 0 and no error when
	// nothing is there, and where the system moves no batches, always. It is for
	// whoever is the only one to read.
	ReadReady(ds []Datagram) (int, error)

	// ReadAhead reads into ds what is there and returns how many datagrams that
	// is, without waiting, and while another goroutine waits in Read: that one
	// may have been woken by a datagram and have no processor yet. Call it again
	// until it returns 0, for it may have taken in a burst of more. Peer and
	// Local need not be set. It is 0 if nothing is there, where the system cannot do
	// that (Windows), and after Close.
	ReadAhead(ds []Datagram) int

	// Write sends ds in order, N bytes from Buf to Peer each, from Local if
	// that is a valid address. It stops at the first datagram that could not
	// be sent and returns how many went before it, and why it did not. The
	// caller may go on behind that one. All that is known after success is
	// that the datagrams were handed to the network.
	//
	// Where the system's buffer has no room for a datagram, that is an error
	// after some milliseconds at most, and at once for those after it until
	// one was sent again.
	Write(ds []Datagram) (int, error)

	// Pending reports whether a datagram is there, so that a Read would find
	// it. It is false, too, where the system cannot tell.
	Pending() bool

	// SetReadDeadline makes a Read that waits at t, or comes later, fail with an
	// error that is os.ErrDeadlineExceeded; the zero time takes that back.
	SetReadDeadline(t time.Time) error

	// Dropped returns how many datagrams the system has lost for want of room in the
	// socket's receive buffer, as far as the datagrams read told: those lost behind the
	// last one are not in it yet. It is 0 where the system cannot tell and without
	// [Options.CountDrops].
	Dropped() uint64

	// Bursts returns how many datagrams have come and gone in bursts, see [Options.Bursts], and
	// whether the system still takes some that go: false from the start where it cannot.
	Bursts() (in, out uint64, able bool)

	// ReadBuffer returns the size in bytes of the kernel's receive buffer, as
	// [Options.ReadBuffer] would ask for it, or 0 where the system does not tell.
	ReadBuffer() int

	// LocalAddr returns the address and port that the socket is bound to.
	LocalAddr() netip.AddrPort

	// Close releases the socket. A second call returns an error for which
	// [Closed] is true.
	Close() error
}

// A Datagram is one datagram to read into or to send.
type Datagram struct {
	Buf   []byte         // space; what was read, or is to be sent, is Buf[:N]
	N     int            // length in bytes of the payload
	Peer  netip.AddrPort // where it came from, or is to go
	Local netip.Addr     // the address of ours that it was sent to or is to leave from; the zero Addr if unknown or for the system to choose

	// Received is when the system took in a datagram that was read, in Unix
	// nanoseconds of its wall clock; 0 if that is unknown or was not asked for.
	Received int64
}

// Payload returns the part of Buf that was read or is to be sent.
func (d *Datagram) Payload() []byte { return d.Buf[:d.N] }
