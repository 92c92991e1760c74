package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/filewatch"
)

// Server is one r-server: one server ID and one engine per tenant, over all its
// addresses. Make it with [New]; its methods are safe for concurrent use.
type Server struct {
	settings *settings
	id       ident.ServerID
	log      *slog.Logger
	registry *registry
	counts   serverCounts

	listeners []*listener
	dns       *dnsFront          // nil if there is none
	watcher   *filewatch.Watcher // nil if there is none
	admin     *http.Server       // nil if there is none
	adminLn   net.Listener

	reloading sync.Mutex        // one reload at a time; guards loaded
	loaded    [sha256.Size]byte // of the text that the current tenants come from

	made    bool // New has succeeded: from here on changes are logged
	started atomic.Bool
	ready   atomic.Bool
	end     chan struct{} // closed by Close
	endOnce sync.Once
}

// New checks the configuration and the clock, reads the tenants and binds every
// address, so that what is wrong is told before anything is answered, in an error of
// one line. What it bound is released by [Server.Close], or when [Server.Run] ends.
func New(c Config) (*Server, error) {
	st, err := c.check()
	if err != nil {
		return nil, err
	}
	s := &Server{settings: st, log: st.Logger, end: make(chan struct{})}
	if err := s.prepare(); err != nil {
		s.release()
		return nil, err
	}
	s.made = true
	return s, nil
}

func (s *Server) prepare() error {
	now := s.settings.Clock.Now()
	start := time.UnixMilli(int64(now.Wall))
	if err := checkStart(start, buildTime()); err != nil {
		return err
	}
	if err := s.identify(start); err != nil {
		return err
	}
	s.registry = newRegistry(engineRules{
		skew: s.settings.skew, dedupCap: s.settings.dedupCap,
		identities: s.settings.Identities, answerBytes: s.settings.AnswerBytes,
		maxLabels:   s.settings.MaxLabels,
		memoryLimit: s.settings.MemoryLimit, memoryStrict: s.settings.MemoryStrict,
		entropy: s.settings.Entropy,
	})
	s.watch()
	for _, step := range []func() error{s.loadTenants, s.listen, s.listenDNS, s.listenAdmin} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// identify draws the server's ID. Of the 23 bits that tell apart servers that started
// in the same second, the upper 10 are the millisecond, so that a server that is
// restarted at once is younger than it was, and the others are chance.
func (s *Server) identify(start time.Time) error {
	var b [4]byte
	if _, err := io.ReadFull(s.settings.Entropy, b[:]); err != nil {
		return fmt.Errorf("server: drawing the server ID: %w", err)
	}
	const chanceBits = 13
	millisecond := uint32(start.Nanosecond() / int(time.Millisecond))
	id, err := ident.NewServerID(start, millisecond<<chanceBits|binary.LittleEndian.Uint32(b[:])>>(32-chanceBits))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.id = id
	return nil
}

// ID returns the server's ID, which is new at every start.
func (s *Server) ID() ident.ServerID { return s.id }

// Addrs returns the UDP addresses that are answered on, in the configuration's order,
// with the ports that the system chose.
func (s *Server) Addrs() []netip.AddrPort {
	addrs := make([]netip.AddrPort, len(s.listeners))
	for i, l := range s.listeners {
		addrs[i] = l.addr
	}
	return addrs
}

// DNSAddr returns the address of the DNS server, or the zero AddrPort if there is none.
func (s *Server) DNSAddr() netip.AddrPort {
	if s.dns == nil {
		return netip.AddrPort{}
	}
	return s.dns.addr()
}

// AdminAddr returns the address of health and metrics, or the zero AddrPort if there
// are none.
func (s *Server) AdminAddr() netip.AddrPort {
	if s.adminLn == nil {
		return netip.AddrPort{}
	}
	a, _ := s.adminLn.Addr().(*net.TCPAddr)
	return a.AddrPort()
}

// Run answers until the context ends, then leaves DNS, goes on answering for
// [Config.Drain], and ends. [Server.Close] ends it at once. Both are a nil error; any
// other end is an error. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("server: it has run already; make another")
	}
	select {
	case <-s.end:
		return nil // closed before it ran
	default:
	}
	failed := make(chan error, 2) // DNS and admin
	var tasks sync.WaitGroup
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.start(background, &tasks, failed)
	s.ready.Store(true)
	s.warn()
	s.announce()

	var err error
	select {
	case <-ctx.Done():
		err = s.drain(failed)
	case <-s.end:
	case err = <-failed:
	}
	s.ready.Store(false)
	cancel()
	s.release()
	tasks.Wait()
	s.log.Info("stopped", "server_id", s.id.String())
	return err
}

// start begins everything that goes on until release.
func (s *Server) start(ctx context.Context, tasks *sync.WaitGroup, failed chan<- error) {
	for _, l := range s.listeners {
		for _, w := range l.workers {
			tasks.Go(func() { w.run(ctx) })
		}
		if l.balancer != nil {
			tasks.Go(func() { l.steer(ctx, s.settings.Clock) })
		}
	}
	tasks.Go(func() { s.registry.sweep(ctx, s.settings.Clock) })
	tasks.Go(func() { s.rest(ctx) })
	if s.watcher != nil {
		tasks.Go(func() {
			s.watcher.Run(ctx, s.fileChanged, func(err error) { s.log.Warn("the tenants file is not watched well", "error", err) })
		})
	}
	if s.dns != nil {
		tasks.Go(func() {
			if err := s.dns.serve(ctx); err != nil {
				failed <- err
			}
		})
	}
	if s.admin != nil {
		tasks.Go(func() {
			if err := s.admin.Serve(s.adminLn); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("server: admin: %w", err)
			}
		})
	}
}

// announce logs what a supervisor or a test needs to know to talk to the server.
func (s *Server) announce() {
	workers := 0
	for _, l := range s.listeners {
		workers += len(l.workers)
	}
	attrs := []any{"server_id", s.id.String(), "listen", texts(s.Addrs()), "workers", workers, "tenants", len(s.registry.tenants())}
	if a := s.DNSAddr(); a.IsValid() {
		attrs = append(attrs, "dns", a.String(), "zone", s.settings.Zone)
	}
	if a := s.AdminAddr(); a.IsValid() {
		attrs = append(attrs, "admin", a.String())
	}
	s.log.Info("serving", attrs...)
}

// drain leaves discovery and goes on answering those who have not noticed yet.
func (s *Server) drain(failed <-chan error) error {
	s.ready.Store(false)
	if s.dns != nil {
		s.dns.leave()
	}
	if s.settings.Drain == 0 {
		return nil
	}
	s.log.Info("draining", "server_id", s.id.String(), "for", s.settings.Drain.String())
	over := time.NewTimer(s.settings.Drain)
	defer over.Stop()
	select {
	case <-over.C:
	case <-s.end:
	case err := <-failed:
		return err
	}
	return nil
}

// Close ends the server at once, whatever it is doing, and does not wait for it:
// [Server.Run] returns when everything has ended, also if it is called only then.
// Close may be called any number of times.
func (s *Server) Close() {
	s.endOnce.Do(func() { close(s.end) })
	s.release()
}

// release closes everything that was opened. What was closed before does not mind.
func (s *Server) release() {
	for _, l := range s.listeners {
		for _, w := range l.workers {
			_ = w.conn.Close()
		}
	}
	if s.watcher != nil {
		_ = s.watcher.Close()
	}
	if s.dns != nil {
		s.dns.close()
	}
	if s.admin != nil {
		_ = s.admin.Close()
	}
	if s.adminLn != nil {
		_ = s.adminLn.Close()
	}
}

func texts(addrs []netip.AddrPort) []string {
	list := make([]string, len(addrs))
	for i, a := range addrs {
		list[i] = a.String()
	}
	return list
}
