package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// writeBuffer is the size in bytes of each socket's send buffer, if the system
// allows it. It has to have room beside the answers to a client on the same link
// that is dead, which lie there until the system gives it up.
const writeBuffer = 1 << 20

// listener is one UDP address and the workers that share it. Each has a socket of its
// own, and the system spreads the flows over them; the balancer mends what it did not.
type listener struct {
	addr     netip.AddrPort
	workers  []*worker
	balancer *balancer // nil if there is nothing to balance
	received []uint64  // space for balance
}

// listen binds the UDP addresses and makes their workers. The first bind of each address
// is a plain one, so that a second server on a taken port is refused.
func (s *Server) listen() error {
	for _, a := range s.settings.listen {
		conns, err := udp.ListenGroup(s.settings.Stack, a, s.settings.Workers, s.socketOptions())
		if err != nil {
			return listenError("UDP", a, err, udp.InUse(err))
		}
		l := &listener{addr: conns[0].LocalAddr()}
		s.listeners = append(s.listeners, l)
		for _, c := range conns {
			w := &worker{id: s.id, conn: c, clock: s.settings.Clock, registry: s.registry, counts: &s.counts}
			if own, ok := c.(interface{ Nap(time.Duration) }); ok {
				w.moderation.nap = own.Nap
			}
			w.standing.init(c, s.settings.ReceiveBuffer.Wait)
			w.yields = runtime.GOMAXPROCS(0) > s.settings.Workers
			l.workers = append(l.workers, w)
		}
		for _, w := range l.workers { // all sockets are known by now, and closed should this fail
			if w.sealer, err = wire.NewSealer(s.settings.Entropy); err != nil {
				return fmt.Errorf("server: %w", err)
			}
		}
		if err := l.spread(s.settings); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) socketOptions() udp.Options {
	// How long a datagram lay in its socket is told by the machine's own clock.
	_, machines := s.settings.Clock.(systemClock)
	return udp.Options{
		AskedAddr: true, Received: machines, CountDrops: true, Bursts: !s.settings.NoBursts, OwnThread: true,
		ReadBuffer: s.settings.ReceiveBuffer.bytes(s.settings.Workers), WriteBuffer: writeBuffer,
	}
}

// listenAdmin binds the address of health and metrics.
func (s *Server) listenAdmin() error {
	if !s.settings.admin.IsValid() {
		return nil
	}
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(s.settings.admin))
	if err != nil {
		return listenError("admin TCP", s.settings.admin, err, errors.Is(err, syscall.EADDRINUSE))
	}
	s.adminLn = ln
	gatherer, err := newGatherer(s)
	if err != nil {
		return err
	}
	s.admin = newAdmin(s.ready.Load, gatherer, s.log)
	return nil
}

// listenError says in one line which address could not be had and what to do.
func listenError(what string, a netip.AddrPort, err error, taken bool) error {
	if taken {
		return fmt.Errorf("server: cannot listen on %s %v: the port is taken by another program, perhaps another server; stop that or choose another port", what, a)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return fmt.Errorf("server: cannot listen on %s %v: %w", what, a, err)
}
