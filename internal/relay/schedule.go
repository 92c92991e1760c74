package relay

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// item is a datagram under way.
type item struct {
	way     direction
	due     time.Time
	turn    uint64 // of two that are due at once the one that came first goes first
	from    udp.Conn
	to      netip.AddrPort
	payload []byte
}

// plan has a datagram leave when it is due. The relay is locked.
func (r *Relay) plan(i *item) {
	r.queue.put(i)
	if r.queue[0] != i {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default: // it is to wake up already
	}
}

// fine is how long before a datagram is due the timer is left for [Config.Sleep]. What comes
// meanwhile and is due sooner is late by that much at most.
const fine = 2 * time.Millisecond

// handOn sends what is due, until the relay is closed.
func (r *Relay) handOn() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := r.sendDue()
		switch {
		case wait > fine:
			timer.Reset(wait - fine)
		case wait > 0:
			r.sleep(wait)
			continue
		default:
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.done:
			return
		}
	}
}

// sendDue sends what is due and returns how long it is until the next is, 0 if there is none.
func (r *Relay) sendDue() time.Duration {
	for {
		r.mu.Lock()
		if len(r.queue) == 0 || r.closed {
			r.mu.Unlock()
			return 0
		}
		wait := time.Until(r.queue[0].due)
		if wait > 0 {
			r.mu.Unlock()
			return wait
		}
		i := r.queue.take()
		r.mu.Unlock()
		ds := [1]udp.Datagram{{Buf: i.payload, N: len(i.payload), Peer: i.to}}
		n, _ := i.from.Write(ds[:])
		r.mu.Lock()
		r.late.Add(int64(-wait))
		if -wait > TooLate {
			r.stats.TooLate++
		}
		if n == 1 {
			r.stats.of(i.way).Sent++
		} else {
			r.stats.of(i.way).Unsent++
		}
		r.mu.Unlock()
	}
}

// queue is what is under way, the next to leave first.
type queue []*item

func (q *queue) put(i *item) {
	at, _ := slices.BinarySearchFunc(*q, i, func(a, b *item) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.turn, b.turn))
	})
	*q = slices.Insert(*q, at, i)
}

func (q *queue) take() *item {
	i := (*q)[0]
	*q = slices.Delete(*q, 0, 1)
	return i
}
