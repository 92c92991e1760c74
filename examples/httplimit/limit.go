// Httplimit is an HTTP server whose handler asks for admission before it works: 300
// requests in any minute for everybody together, and 5 for each client address,
// decided as one.
//
//	WEIR_KEY=… WEIR_DOMAIN=c-7.rl.example.com go run ./examples/httplimit
package main

import (
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirhq/weir"
)

// limiter lets requests through to next while there are tokens.
type limiter struct {
	client *weir.Client
	next   http.Handler
	// failOpen lets requests through when there is no decision. The budget is then
	// unprotected, but an outage of all servers takes nothing else down.
	failOpen bool

	mu         sync.Mutex
	complained time.Time // when the log was last told that there is no room
}

const window = time.Minute

var everybody = weir.Bucket("http", 300, window)

// ServeHTTP answers 429 where a limit is reached, and 503 where there is no decision
// or no room.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	mine := weir.Bucket("http/"+host, 5, window)
	d, err := l.client.Acquire(r.Context(), weir.Request{
		Resources: []weir.Resource{everybody.Take(1), mine.Take(1)},
		Label:     r.Method,
	})
	switch {
	case err != nil && !l.failOpen:
		http.Error(w, "no decision", http.StatusServiceUnavailable)
	case err == nil && d.NoRoom():
		// No limit is reached: the servers have no room for one bucket more. That is
		// not the caller's fault, and coming back later may not help: an operator has
		// to. It stays closed all the same, or else whoever comes from many addresses
		// could use up the room and get past all limits.
		l.complain(d)
		http.Error(w, "out of room", http.StatusServiceUnavailable)
	case err == nil && !d.Granted():
		w.Header().Set("Retry-After", strconv.Itoa(int(window/time.Second)))
		http.Error(w, blame(d), http.StatusTooManyRequests)
	default:
		l.next.ServeHTTP(w, r)
	}
}

// complain tells the operator, once a minute, that there is no room.
func (l *limiter) complain(d weir.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.complained) >= time.Minute {
		l.complained = now
		log.Printf("use fewer buckets, or a key with a higher quota: %v", d)
	}
}

// blame tells the caller whose limit it was, without its numbers.
func blame(d weir.Decision) string {
	if !d.Resources()[0].Covered() {
		return "the service is busy"
	}
	return "you are asking too often"
}
