package server

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
)

// A worker that gets more than it can decide for as long as standingFor always has a full socket: a standing
// queue. Then all that it decides has waited so long that clients have asked again, or given up, and
// its work is for nobody. So it lets the kernel drop what comes when the queue is longer than a part of what
// --receive-buffer allows bursts to wait, which costs the worker nothing, and decides the rest in time.
const (
	standingFor    = 50 * time.Millisecond
	standingTarget = 5 // a burst may wait five times as long as a standing queue
)

// standing bounds the standing queue of one socket. Its worker calls read, and the server rest.
type standing struct {
	socket buffered // nil if the system does not tell what waits
	target int64    // ms that what is read next may have waited, at least once in standingFor
	full   int      // bytes: the receive buffer when nothing stands

	mu      sync.Mutex
	size    int   // bytes: the receive buffer as it is
	last    int64 // ns: when it was last read
	until   int64 // ns: the end of the interval that is under way
	least   int64 // ms: the shortest wait in it
	limited atomic.Bool
}

// buffered is a socket whose receive buffer can be changed.
type buffered interface {
	Queued() int
	ReadBuffer() int
	SetReadBuffer(bytes int) error
}

// init has the queue of a socket bounded, if that can be.
func (q *standing) init(conn udp.Conn, allowed time.Duration) {
	socket, ok := conn.(buffered)
	if !ok {
		return
	}
	if q.full = socket.ReadBuffer(); q.full > 0 {
		q.socket, q.size, q.least = socket, q.full, math.MaxInt64
		q.target = max(1, (allowed / standingTarget).Milliseconds())
	}
}

// read takes in that a batch was read, of which the first datagram has waited longest.
func (q *standing) read(now limiter.Time, first *udp.Datagram) {
	if q.socket == nil {
		return
	}
	wait := waited(now, first.Received)
	q.mu.Lock()
	defer q.mu.Unlock()
	since := now.Mono - q.last
	q.last = now.Mono
	q.least = min(q.least, wait)
	if since > (wait+1)*int64(time.Millisecond) { // it came after that, so the queue was empty meanwhile
		q.least = 0
	}
	if now.Mono < q.until {
		return
	}
	q.step(wait)
	q.until, q.least = now.Mono+int64(standingFor), math.MaxInt64
}

// step fits the buffer to the interval that is over.
func (q *standing) step(wait int64) {
	size := q.size
	switch {
	case q.least > q.target:
		queued := q.socket.Queued()
		if queued == 0 {
			return // nothing stands now, or the system does not tell what does
		}
		size = min(size, max(udp.ReadBufferFor(leastHeld), int(int64(queued)*q.target/wait)))
	case q.least <= q.target/2:
		size = min(q.full, 2*size)
	}
	q.resize(size)
}

func (q *standing) resize(size int) {
	if size == q.size || q.socket.SetReadBuffer(size) != nil {
		return
	}
	q.size = size
	q.limited.Store(size < q.full)
}

// restEvery is how often it is looked for workers that are overloaded no more.
const restEvery = 500 * time.Millisecond

// rest gives the socket its buffer back if nothing was read for so long: then nothing stands.
func (q *standing) rest(now limiter.Time) {
	if !q.limited.Load() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Mono-q.until > int64(restEvery) {
		q.resize(q.full)
	}
}

// rest watches all workers until the context ends.
func (s *Server) rest(ctx context.Context) {
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, l := range s.listeners {
			for _, w := range l.workers {
				w.standing.rest(s.settings.Clock.Now())
			}
		}
	}
}
