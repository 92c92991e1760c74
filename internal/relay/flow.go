package relay

import (
	"net/netip"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// maxDatagram is what a datagram of ours may hold; what is longer is cut off here and no
// datagram of ours.
const maxDatagram = 2048

func (r *Relay) readFront() {
	for d := range udp.Datagrams(r.front, maxDatagram) {
		r.take(up, d, d.Peer)
	}
}

// readFlow reads the answers to one client.
func (r *Relay) readFlow(c udp.Conn, client netip.AddrPort) {
	for d := range udp.Datagrams(c, maxDatagram) {
		r.take(down, d, client)
	}
}

// take decides what becomes of a datagram of a client, or to one.
func (r *Relay) take(to direction, d *udp.Datagram, client netip.AddrPort) {
	came := arrival(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	w, count := &r.ways[to], r.stats.of(to)
	loss, delay := w.draws.Uint64(), w.draws.Uint64()
	switch {
	case w.cut:
		count.Cut++
		return
	case loss%1_000_000 < uint64(w.Loss):
		count.Lost++
		return
	}
	item := &item{way: to, due: came.Add(w.Delay.At(delay)), turn: r.turn, from: r.front, to: client}
	r.turn++
	if to == up {
		item.from, item.to = r.flow(client), r.target
		if item.from == nil {
			count.Unsent++
			return
		}
	}
	item.payload = append(item.payload, d.Payload()...)
	r.plan(item)
}

// flow returns the socket that stands for a client, nil if there is none to be had.
func (r *Relay) flow(client netip.AddrPort) udp.Conn {
	if c := r.flows[client]; c != nil {
		return c
	}
	if r.closed || len(r.flows) == maxFlows {
		return nil
	}
	c, err := r.stack.Listen(netip.AddrPortFrom(r.back, 0), udp.Options{Received: true, ReadBuffer: readBuffer})
	if err != nil {
		return nil
	}
	r.flows[client] = c
	r.tasks.Go(func() { r.readFlow(c, client) })
	return c
}

// arrival returns when a datagram reached this machine, which may be a while before it was read.
func arrival(d *udp.Datagram) time.Time {
	now := time.Now()
	if d.Received == 0 {
		return now
	}
	// A wall clock that was set between the two readings tells nothing.
	waited := time.Duration(now.UnixNano() - d.Received)
	if waited < 0 || waited > time.Second {
		return now
	}
	return now.Add(-waited)
}

func (s *Stats) of(d direction) *Count {
	if d == up {
		return &s.Up
	}
	return &s.Down
}
