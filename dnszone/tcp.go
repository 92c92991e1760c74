package dnszone

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	maxGuests       = 256 // TCP connections at a time
	maxGuestsPrefix = 64  // of them from one source prefix
	tcpIdle         = 5 * time.Second
	tcpQuestions    = 128 // on one connection
	acceptPause     = 10 * time.Millisecond
)

// serveTCP accepts connections and serves each in a goroutine; it returns when
// all of them have ended.
func (s *Server) serveTCP() error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := s.tcp.AcceptTCP()
		if err != nil {
			var ne net.Error
			if errors.Is(err, net.ErrClosed) || !errors.As(err, &ne) {
				return s.fail("accept TCP", err)
			}
			// Out of descriptors, or a peer that has gone: pause, since the
			// next call may fail at once too.
			select {
			case <-s.closed:
			case <-time.After(acceptPause):
			}
			continue
		}
		if !s.guests.add(conn) {
			s.stats.refused.Add(1)
			_ = conn.Close()
			continue
		}
		wg.Go(func() {
			defer s.guests.remove(conn)
			s.serveConn(conn)
		})
	}
}

// serveConn answers questions one after the other until the peer has no more,
// takes too long, or sends what is no question.
func (s *Server) serveConn(conn *net.TCPConn) {
	var head [2]byte
	for range tcpQuestions {
		_ = conn.SetDeadline(time.Now().Add(tcpIdle))
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if n > maxQuestion {
			return
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(conn, b); err != nil {
			return
		}
		s.stats.tcp.Add(1)
		out := s.zone.respond(b, false)
		if out == nil {
			s.stats.ignored.Add(1)
			return
		}
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(out)), uint16(len(out)))
		if _, err := conn.Write(append(framed, out...)); err != nil {
			s.stats.sendError.Add(1)
			return
		}
	}
}

// guests are the open TCP connections.
type guests struct {
	mu     sync.Mutex
	conns  map[*net.TCPConn][16]byte // to the prefix each came from
	from   map[[16]byte]int
	closed bool
}

// add reports whether there is room for one more.
func (g *guests) add(conn *net.TCPConn) bool {
	prefix := prefixOf(remote(conn))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || len(g.conns) >= maxGuests || g.from[prefix] >= maxGuestsPrefix {
		return false
	}
	if g.conns == nil {
		g.conns, g.from = map[*net.TCPConn][16]byte{}, map[[16]byte]int{}
	}
	g.conns[conn] = prefix
	g.from[prefix]++
	return true
}

func (g *guests) remove(conn *net.TCPConn) {
	_ = conn.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	prefix, ok := g.conns[conn]
	if !ok {
		return
	}
	delete(g.conns, conn)
	if g.from[prefix]--; g.from[prefix] == 0 {
		delete(g.from, prefix)
	}
}

func (g *guests) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for conn := range g.conns {
		_ = conn.Close()
	}
}

func remote(conn *net.TCPConn) netip.Addr {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr()
	}
	return netip.Addr{}
}
