package dnszone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const bindTries = 16 // ports to try that are free for both UDP and TCP

// Options of a [Server]. The zero value is the default.
type Options struct {
	// ResponseRate is how many answers a second one source prefix (/24 in IPv4,
	// /56 in IPv6; loopback is free) gets over UDP; a burst of two seconds'
	// worth is allowed. What is above gets no answer, or every second time one
	// that sends a real client to TCP. 0 is [DefaultResponseRate], negative is
	// no limit.
	ResponseRate int
}

// Server serves a [Zone] over UDP and TCP on one address.
type Server struct {
	zone    *Zone
	udp     *udpSocket
	tcp     *net.TCPListener
	limiter *limiter
	guests  guests
	stats   counters

	closeOnce sync.Once
	closeErr  error
	closed    chan struct{}
}

// Stats counts what a [Server] did since it was made.
type Stats struct {
	UDP       uint64 // messages that came over UDP
	TCP       uint64 // messages that came over TCP
	Ignored   uint64 // of these, not answered because they were no question
	Withheld  uint64 // answers over UDP not given because of the response limit
	Slipped   uint64 // answers over UDP that said only "ask over TCP", for the same reason
	Refused   uint64 // TCP connections closed at once because there were too many
	SendError uint64 // answers that could not be sent
}

type counters struct{ udp, tcp, ignored, withheld, slipped, refused, sendError atomic.Uint64 }

// Listen binds UDP and TCP on one address, "host:port" with an IP literal, an
// empty host (every address) or a host name of this machine; port 0 takes one
// that is free for both. 0.0.0.0 is every IPv4 address and no other. Nothing is
// answered before [Server.Serve]. The errors say what could not be bound.
func Listen(addr string, zone *Zone, opts Options) (*Server, error) {
	if zone == nil {
		return nil, errors.New("dnszone: Listen without a zone; make one with New")
	}
	if addr == "" {
		return nil, errors.New("dnszone: no listen address; give one such as 127.0.0.1:1053")
	}
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dnszone: listen address %q: %w; give one such as 127.0.0.1:1053", addr, err)
	}
	rate := opts.ResponseRate
	if rate == 0 {
		rate = DefaultResponseRate
	}
	s := &Server{zone: zone, limiter: newLimiter(max(rate, 0), time.Now()), closed: make(chan struct{})}
	for try := 0; ; try++ {
		if s.tcp, err = net.ListenTCP("tcp"+family(at.IP), at); err != nil {
			return nil, fmt.Errorf("dnszone: cannot serve DNS on %s over TCP: %w; %s", addr, err, cure(err))
		}
		same := *at
		same.Port = int(s.Addr().Port())
		if s.udp, err = listenUDP((*net.UDPAddr)(&same)); err == nil {
			return s, nil
		}
		_ = s.tcp.Close()
		if at.Port != 0 || try == bindTries {
			return nil, fmt.Errorf("dnszone: cannot serve DNS on %s over UDP: %w; %s", addr, err, cure(err))
		}
	}
}

// family is what keeps a network to IPv4 where the address is of that: otherwise
// the wildcard of IPv4 would be taken for that of both.
func family(ip net.IP) string {
	if ip.To4() != nil {
		return "4"
	}
	return ""
}

// cure is what to do where an address cannot be bound.
func cure(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "a port below 1024 takes the privilege to bind it (on Linux CAP_NET_BIND_SERVICE), another one none"
	}
	return "choose a free address, or stop who uses it"
}

// Addr returns the address bound, with the port that was taken for port 0.
func (s *Server) Addr() netip.AddrPort {
	a, ok := s.tcp.Addr().(*net.TCPAddr)
	if !ok { // a TCP listener has no other address
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
}

// Serve answers until ctx ends or the server is closed, which are no errors, or
// until a socket fails. When it returns the sockets are closed and everything it
// started has ended. It is called once.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	var wg sync.WaitGroup
	var udpErr, tcpErr error
	wg.Go(func() { udpErr = s.serveUDP() })
	wg.Go(func() { tcpErr = s.serveTCP() })
	wg.Wait()
	_ = s.Close()
	return errors.Join(udpErr, tcpErr)
}

// Close stops the server; it may be called more than once and at any time.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		s.closeErr = errors.Join(s.udp.close(), s.tcp.Close())
		s.guests.closeAll()
	})
	return s.closeErr
}

// Stats returns what was counted so far.
func (s *Server) Stats() Stats {
	c := &s.stats
	return Stats{
		UDP: c.udp.Load(), TCP: c.tcp.Load(), Ignored: c.ignored.Load(), Withheld: c.withheld.Load(),
		Slipped: c.slipped.Load(), Refused: c.refused.Load(), SendError: c.sendError.Load(),
	}
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// fail ends both halves with the error of one, unless they were ending anyway.
func (s *Server) fail(what string, err error) error {
	if s.isClosed() {
		return nil
	}
	_ = s.Close()
	return fmt.Errorf("dnszone: %s on %v: %w", what, s.Addr(), err)
}
