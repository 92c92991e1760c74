package udp

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is a Conn of the operating system. What moves datagrams is one of two ways:
// a system call for many, or one for each.
type socket struct {
	conn  descriptor
	in    source
	out   sink
	ahead ahead
	local netip.AddrPort
	drops dropCounter

	bursts burstCounter
}

// descriptor is what a socket is to the system. It is a *net.UDPConn unless it has threads of its own.
type descriptor interface {
	SyscallConn() (syscall.RawConn, error)
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
	Close() error
}

// burstCounter counts what came and went in bursts.
type burstCounter struct {
	in, out atomic.Uint64
	able    atomic.Bool // to send them
}

// source reads the datagrams of one socket, as [Conn] says.
type source interface {
	read(ds []Datagram) (int, error)
	ready(ds []Datagram) (int, error)
}

// sink sends the datagrams of one socket, as [Conn] says.
type sink interface {
	write(ds []Datagram) (int, error)
}

func (s *socket) configure(o Options) error {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return err
	}
	if err := s.setReadBuffer(raw, o.ReadBuffer); err != nil {
		return err
	}
	if o.WriteBuffer > 0 {
		if err := s.conn.SetWriteBuffer(o.WriteBuffer); err != nil {
			return fmt.Errorf("set the write buffer to %d bytes: %w", o.WriteBuffer, err)
		}
	}
	batches := !o.NoBatch && canBatch(raw)
	plain, _ := s.conn.(*net.UDPConn)
	if o.OwnThread && batches {
		own, err := onThread(plain)
		if err != nil {
			return err
		}
		s.conn, plain = own, nil
		if raw, err = own.SyscallConn(); err != nil {
			return err
		}
	}
	o.Bursts = o.Bursts && batches
	var told asked
	err = onDescriptor(raw, func(fd uintptr) (err error) {
		told, err = askControl(fd, s.local.Addr(), o)
		return err
	})
	if err != nil {
		return err
	}
	s.bursts.able.Store(told.segments)
	alone := newWriter(s.conn, raw, s.local.Addr().Is4(), told.addr)
	s.in, s.out = &reader{conn: plain, asked: told, drops: &s.drops}, alone
	if batches {
		s.in, s.out = newBatches(s, raw, alone, told)
	}
	return nil
}

// mostReadBuffer is the most that a socket is asked for: systems take the size as 32 bits
// with a sign, and double it. What one socket gets of a group that came out small can be more.
const mostReadBuffer = 1<<30 - 1

// setReadBuffer sets the size of the receive buffer; 0 leaves it as it is.
func (s *socket) setReadBuffer(raw syscall.RawConn, size int) error {
	if size == 0 {
		return nil
	}
	size = min(size, mostReadBuffer)
	if err := setReadBuffer(s.conn, raw, size); err != nil {
		return fmt.Errorf("set the read buffer to %d bytes: %w", size, err)
	}
	return nil
}

func (s *socket) Read(ds []Datagram) (int, error) {
	if len(ds) == 0 {
		return 0, nil
	}
	return s.in.read(ds)
}

func (s *socket) ReadReady(ds []Datagram) (int, error) {
	if len(ds) == 0 {
		return 0, nil
	}
	return s.in.ready(ds)
}

func (s *socket) Write(ds []Datagram) (int, error) { return s.out.write(ds) }

func (s *socket) Dropped() uint64 { return s.drops.total.Load() }

func (s *socket) Bursts() (in, out uint64, able bool) {
	return s.bursts.in.Load(), s.bursts.out.Load(), s.bursts.able.Load()
}

func (s *socket) ReadAhead(ds []Datagram) int { return s.ahead.read(s.conn, ds) }

// Queued returns how many bytes of the receive buffer are in use, as [Conn.ReadBuffer] counts them, or 0 where the
// system does not tell.
func (s *socket) Queued() (bytes int) {
	raw, err := s.conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { bytes = queued(fd) })
	}
	if err != nil {
		return 0
	}
	return bytes
}

// SetReadBuffer changes [Options.ReadBuffer]. What waits in a buffer that becomes too small is kept.
func (s *socket) SetReadBuffer(bytes int) error {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("udp: %w", err)
	}
	return s.setReadBuffer(raw, bytes)
}

func (s *socket) ReadBuffer() int {
	size := 0
	raw, err := s.conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { size = readBuffer(fd) })
	}
	if err != nil {
		return 0
	}
	return size
}

// Nap has the calling thread wait, for at least so long and rarely for more than twice that, if the socket has
// threads of its own; else it returns at once. Nothing ends it, so it is for parts of a millisecond.
func (s *socket) Nap(d time.Duration) {
	if own, ok := s.conn.(interface{ nap(time.Duration) }); ok {
		own.nap(d)
	}
}

func (s *socket) LocalAddr() netip.AddrPort { return s.local }

func (s *socket) Close() error { return s.conn.Close() }

// dropCounter adds up a counter of the kernel that wraps. Its reader is one goroutine
// at a time.
type dropCounter struct {
	last  uint32
	total atomic.Uint64
}

// saw takes in what the kernel told beside a datagram. Datagrams that came by several
// cores at once may tell it out of order: what goes back is no wrap.
func (c *dropCounter) saw(n uint32) {
	if more := int32(n - c.last); more > 0 {
		c.last = n
		c.total.Add(uint64(more))
	}
}
