package server

import (
	"sync"

	"github.com/weirhq/weir/limiter"
)

// maxMaxRate is the highest `max_rate`: with it, what rateGate counts just fits 63 bits.
const maxMaxRate = 1_000_000_000

const nsPerSecond = 1_000_000_000

// rateGate lets at most a rate of datagrams through: in any span of t seconds at most
// rate * (t + 1), so a tenant that was quiet for a second can send a second's worth at
// once. It counts in whole nanoseconds times datagrams per second, so nothing is rounded
// away. The zero value is full. It is safe for concurrent use.
type rateGate struct {
	mu     sync.Mutex
	used   bool
	at     int64 // ns: the latest time that it has been asked at
	credit int64 // nsPerSecond for each datagram that may pass at once
}

// admit reports whether a datagram may pass at a rate from 1 to maxMaxRate. The rate may
// change between calls: what was saved up is kept, up to a second's worth of the new rate.
func (g *rateGate) admit(now limiter.Time, rate int) bool {
	full := int64(rate) * nsPerSecond
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.used {
		g.used, g.at, g.credit = true, now.Mono, full
	}
	// Workers read the clock before they come here, so one can be a little behind.
	if passed := now.Mono - g.at; passed > 0 {
		g.at = now.Mono
		g.credit += min(passed, nsPerSecond) * int64(rate)
	}
	g.credit = min(g.credit, full)
	if g.credit < nsPerSecond {
		return false
	}
	g.credit -= nsPerSecond
	return true
}
