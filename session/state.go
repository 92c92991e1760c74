package session

import (
	"errors"
	"math"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
)

// ErrSpent says that the state cannot be used: a later call has replaced it, or
// another goroutine is in a call with it. Nothing was asked, sent or changed. Go
// on with the state that the later call returned.
var ErrSpent = errors.New("session: the state is spent; go on with the one that the latest call returned")

// A State is a session between two calls. It is a value to pass on, and each is
// used once: a call takes it, which spends it, and returns the next. Using one
// twice is safe and fails with [ErrSpent]. The zero State is closed.
//
// Stats and Servers tell what was so when the State was returned. They may be
// asked at any time, of spent states too.
type State struct {
	m    *machine
	turn uint64
	view *view
}

// view is what can be seen of a state. It never changes.
type view struct {
	stats   weir.Stats
	servers []discovery.Server
}

// Stats returns what was counted until then. The counts of requests, datagrams
// and discovery are those of the latest key and begin anew with another one; the
// others are the session's.
func (s State) Stats() weir.Stats {
	if s.view == nil {
		return weir.Stats{}
	}
	return s.view.stats
}

// Servers returns the servers that the next request under the same key is sent
// to, unless they are looked up anew before, oldest first, in memory of the
// caller's own.
func (s State) Servers() []discovery.Server {
	if s.view == nil {
		return nil
	}
	return cloneServers(s.view.servers)
}

func cloneServers(servers []discovery.Server) []discovery.Server {
	clone := make([]discovery.Server, len(servers))
	for i, s := range servers {
		clone[i] = discovery.Server{ID: s.ID, Addrs: slices.Clone(s.Addrs)}
	}
	return clone
}

// A machine's turn is the number of the state that may be used next. While a call
// is at work it is one more, which is no state's.
const (
	step  = 2
	ended = math.MaxUint64 // no later turn comes
)

// take spends a state and returns what it stands for, for the caller alone.
func (s State) take() (*machine, error) {
	switch {
	case s.m == nil || s.m.turn.Load() == ended:
		return nil, weir.ErrClosed
	case s.m.turn.CompareAndSwap(s.turn, s.turn+1):
		return s.m, nil
	case s.m.turn.Load() == ended: // in between
		return nil, weir.ErrClosed
	}
	return nil, ErrSpent
}

// give ends a call and returns the next state.
func (m *machine) give() State {
	next := State{m: m, turn: m.turn.Load() - 1 + step, view: m.look()}
	m.turn.Store(next.turn)
	return next
}

// retire ends the last call and returns the state for ever.
func (m *machine) retire() State {
	last := State{m: m, turn: ended, view: m.look()}
	m.core, m.key, m.decision = nil, apikey.Key{}, weir.Decision{}
	m.turn.Store(ended)
	return last
}

// look returns the view of now.
func (m *machine) look() *view {
	v := &view{stats: weir.Stats{
		Lookups:          m.counts.lookups,
		Rebinds:          m.counts.rebinds,
		SteeringFailures: m.counts.steeringFailures,
		ReadErrors:       m.counts.readErrors,
		Sockets:          len(m.sockets()),
	}}
	if m.core == nil {
		return v
	}
	v.stats.Stats = m.core.Stats()
	v.servers = m.servers
	return v
}
