package session

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// family is an address family; a session has at most one socket of each between
// calls.
type family int

const (
	ipv4 family = iota
	ipv6
	families
)

// wildcards are where the sockets of the families are bound.
var wildcards = [families]netip.AddrPort{
	ipv4: netip.AddrPortFrom(netip.IPv4Unspecified(), 0),
	ipv6: netip.AddrPortFrom(netip.IPv6Unspecified(), 0),
}

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return ipv4
	}
	return ipv6
}

// link is how a family is reached.
type link struct {
	current *socket // where sends leave from; nil until one is needed
	err     error   // why there is none
	retry   time.Duration
}

// socket is one UDP socket.
type socket struct {
	id      core.SocketID
	conn    udp.Conn
	advised bool // a server advised another port
	in      []udp.Datagram
	n       int // of in, that were read and not handed in
	errors  uint64
}

const (
	readBatch = 4
	// readSpace is one more than the longest datagram, so that one that is too
	// long is seen to be.
	readSpace = wire.MaxDatagram + 1
	// drainLimit is how many datagrams of a socket are handed in before the
	// core's timer has its turn again, however many there are.
	drainLimit = 256
	// vanished is how long a datagram that was there is waited for when it is no
	// more: the system may find it damaged when it is read.
	vanished = 10 * time.Millisecond
	// readPause is how long a reader waits after so many errors in a row.
	readPause       = 5 * time.Millisecond
	readErrorsInRow = 16
	// openRetry is how long a family is left alone after its socket could not be
	// opened.
	openRetry = time.Second
)

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// errStalled is why a datagram was not written.
var errStalled = errors.New("session: the program stalled beyond the request's horizon before the datagram was written")

// write sends a datagram. A replay follows advice that came after the first send;
// a completion delivery, which a decision waits for, does not.
func (m *machine) write(out *core.Send) error {
	f := familyOf(out.To.Addr())
	if out.Kind != core.SendCompletion {
		m.rebind(f)
	}
	s, err := m.socket(f)
	if err != nil {
		return err
	}
	if m.clock().Mono >= out.Until {
		return errStalled
	}
	_, err = s.conn.Write([]udp.Datagram{{Buf: out.Payload, N: len(out.Payload), Peer: out.To}})
	return err
}

// socket returns the socket of a family and opens it if need be.
func (m *machine) socket(f family) (*socket, error) {
	l := &m.links[f]
	if l.current != nil {
		return l.current, nil
	}
	now := m.clock().Mono
	if l.err != nil && now < l.retry {
		return nil, l.err
	}
	conn, err := m.cfg.Stack.Listen(wildcards[f], udp.Options{})
	if err != nil {
		l.err, l.retry = fmt.Errorf("open a socket: %w", err), now+openRetry
		return nil, l.err
	}
	l.current, l.err = m.own(conn), nil
	return l.current, nil
}

// own makes a socket of conn.
func (m *machine) own(conn udp.Conn) *socket {
	m.opened++
	s := &socket{id: m.opened, conn: conn, in: make([]udp.Datagram, readBatch)}
	for i := range s.in {
		s.in[i].Buf = make([]byte, readSpace)
	}
	return s
}

// sockets returns those that are open.
func (m *machine) sockets() []*socket {
	open := append(make([]*socket, 0, len(m.links)+len(m.drained)), m.drained...)
	for f := range m.links {
		if s := m.links[f].current; s != nil {
			open = append(open, s)
		}
	}
	return open
}

// advised notes that a server advised another port for a socket.
func (m *machine) advised(id core.SocketID) {
	for f := range m.links {
		if s := m.links[f].current; s != nil && s.id == id {
			s.advised = true
		}
	}
}

// steer follows the advice that was heard, before anything is sent.
func (m *machine) steer() {
	for f := range m.links {
		m.rebind(family(f))
	}
}

// rebind replaces the socket of a family if a server advised it: the replacement
// is bound and read from now on, beside the old one until the call ends. If no
// port is free, the old one stays.
func (m *machine) rebind(f family) {
	old := m.links[f].current
	if old == nil || !old.advised {
		return
	}
	old.advised = false
	conn, err := udp.ListenNext(m.cfg.Stack, old.conn.LocalAddr(), udp.Options{})
	if err != nil {
		m.counts.steeringFailures++
		m.core.Rebound(m.clock(), old.id, old.id)
		return
	}
	m.counts.rebinds++
	replacement := m.own(conn)
	m.links[f].current = replacement
	m.drained = append(m.drained, old)
	m.core.Rebound(m.clock(), old.id, replacement.id)
}

// retireSockets closes those that were replaced: the request that may have left
// from them has ended.
func (m *machine) retireSockets() {
	for _, s := range m.drained {
		m.counts.readErrors += s.errors
		s.conn.Close()
	}
	m.drained = nil
}

// wait returns when a datagram was read, at an instant, or when ctx ends,
// whichever is first. The readers that it starts have ended by then.
func (m *machine) wait(ctx context.Context, at time.Duration) {
	open := m.sockets()
	arrived := make(chan struct{}, len(open))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, s := range open {
		readers.Go(func() {
			s.read(stop)
			arrived <- struct{}{}
		})
	}
	timer := time.NewTimer(at - m.clock().Mono)
	select {
	case <-arrived:
	case <-timer.C:
	case <-ctx.Done():
	}
	timer.Stop()
	close(stop)
	for _, s := range open {
		s.within(longAgo)
	}
	readers.Wait()
	for _, s := range open {
		s.within(time.Time{})
		m.counts.readErrors += s.errors
		s.errors = 0
	}
}

// within bounds reads. It fails for closed sockets only, whose reads end anyway.
func (s *socket) within(deadline time.Time) { _ = s.conn.SetReadDeadline(deadline) }

// read reads once. Errors that pass are counted.
func (s *socket) read(stop <-chan struct{}) {
	for row := 1; ; row++ {
		n, err := s.conn.Read(s.in)
		s.n = n
		if n > 0 || errors.Is(err, os.ErrDeadlineExceeded) || udp.Closed(err) {
			return
		}
		s.errors++
		if row < readErrorsInRow {
			continue
		}
		pause := time.NewTimer(readPause)
		select {
		case <-pause.C:
		case <-stop:
		}
		pause.Stop()
	}
}

// receive hands in what was read and what is there to be read.
func (m *machine) receive() {
	for _, s := range m.sockets() {
		m.handIn(s)
		for taken := 0; taken < drainLimit && s.conn.Pending(); taken++ {
			s.within(time.Now().Add(vanished))
			n, err := s.conn.Read(s.in)
			s.within(time.Time{})
			s.n = n
			m.handIn(s)
			if errors.Is(err, os.ErrDeadlineExceeded) || udp.Closed(err) {
				break
			}
			if n == 0 {
				m.counts.readErrors++
			}
		}
	}
}

// handIn hands in what was read.
func (m *machine) handIn(s *socket) {
	now := m.clock()
	for i := range s.n {
		m.core.HandleDatagram(now, s.id, s.in[i].Payload())
	}
	s.n = 0
}
