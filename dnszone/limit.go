package dnszone

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Defaults and sizes of the response limit.
const (
	DefaultResponseRate = 200 // answers a second over UDP to one source prefix

	burstSeconds = 2 // a prefix that was quiet has this many seconds' worth at once
	slipEvery    = 2 // of the answers withheld, every second one is a "come over TCP"
	limitSets    = 1024
	limitWays    = 4
	prefix6      = 56
)

type verdict uint8

const (
	pass verdict = iota
	withhold
	slipOne
)

// limiter bounds what the server sends over UDP to one source prefix (/24, /56),
// so that a forged source gets little out of it. It is a table of fixed size:
// when a set is full, the prefix that is furthest from its limit is forgotten.
// Which prefixes share a set depends on a secret of this process.
type limiter struct {
	rate  float64 // tokens a second; 0 limits nobody
	seed  maphash.Seed
	start time.Time

	mu   sync.Mutex
	sets [limitSets][limitWays]source
}

type source struct {
	key    [16]byte
	used   bool
	tokens float64
	at     time.Duration // when tokens was right, since start
	held   uint32        // answers withheld so far
}

func newLimiter(rate int, now time.Time) *limiter {
	return &limiter{rate: float64(rate), seed: maphash.MakeSeed(), start: now}
}

// take decides about one answer to a source. Loopback is not limited: no forged
// datagram comes from there.
func (l *limiter) take(from netip.Addr, now time.Time) verdict {
	if l.rate == 0 || from.Unmap().IsLoopback() {
		return pass
	}
	key := prefixOf(from)
	since := max(now.Sub(l.start), 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.lookup(key, since)
	if s.tokens >= 1 {
		s.tokens--
		return pass
	}
	if s.held++; s.held%slipEvery == 0 {
		return slipOne
	}
	return withhold
}

// lookup returns a prefix's entry, filled up to now; the best one to forget is
// taken over where it has none.
func (l *limiter) lookup(key [16]byte, now time.Duration) *source {
	set := &l.sets[maphash.Bytes(l.seed, key[:])%limitSets]
	victim := &set[0]
	for i := range set {
		s := &set[i]
		if s.used {
			l.fill(s, now)
			if s.key == key {
				return s
			}
		}
		if victim.used && (!s.used || s.tokens > victim.tokens) {
			victim = s
		}
	}
	*victim = source{key: key, used: true, tokens: l.rate * burstSeconds, at: now}
	return victim
}

func (l *limiter) fill(s *source, now time.Duration) {
	if now > s.at {
		s.tokens = min(l.rate*burstSeconds, s.tokens+l.rate*(now-s.at).Seconds())
		s.at = now
	}
}

// prefixOf maps an address to its prefix's key; IPv4 and IPv6 do not meet, since
// the IPv4 form is the mapped one, of which no IPv6 datagram comes.
func prefixOf(a netip.Addr) [16]byte {
	b := a.As16()
	if a.Unmap().Is4() {
		b[15] = 0
		return b
	}
	hi := binary.BigEndian.Uint64(b[:8]) &^ (1<<(64-prefix6) - 1)
	var key [16]byte
	binary.BigEndian.PutUint64(key[:], hi)
	return key
}
