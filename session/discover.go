package session

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
)

// errCutShort is what becomes of lookups that nobody waits for any more. It is no
// context's error: a later call, whose context is another, may be told of it.
var errCutShort = errors.New("the call that asked for it ended first")

// discover is [Discover].
func (m *machine) discover(ctx context.Context, key apikey.Key) error {
	defer m.retireSockets()
	if err := ctx.Err(); err != nil {
		return undecided(err)
	}
	if err := m.adopt(key); err != nil {
		return err
	}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	if len(m.servers) == 0 {
		m.core.Refresh(m.clock())
		m.listen()
		if err := m.outwait(ctx); err != nil {
			return err
		}
		if err := m.lookUp(ctx); err != nil {
			return err
		}
	}
	if len(m.servers) == 0 {
		return noServers(m.cause)
	}
	return nil
}

// lookUp does the lookups that the core wants, and those that it wants after
// that, until the refresh has ended or is of no more use to this call. The error
// is that of ctx having ended.
func (m *machine) lookUp(ctx context.Context) error {
	if len(m.lookups) == 0 {
		return nil
	}
	blind := len(m.servers) == 0
	m.running = make(map[core.LookupID]context.CancelFunc)
	answers := make(chan weir.LookupAnswer)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	for len(m.lookups)+len(m.running) > 0 {
		// Who had nobody to ask goes on once there is somebody: see core's Grace.
		if ctx.Err() != nil || blind && len(m.servers) > 0 {
			cancel()
		}
		m.startLookups(within, answers)
		m.awaitLookup(within, answers)
		m.listen()
	}
	if ctx.Err() == nil {
		return nil
	}
	if len(m.servers) == 0 {
		return noServers(ctx.Err())
	}
	return undecided(ctx.Err())
}

// startLookups begins what the core wants, each in a goroutine, unless ctx has
// ended.
func (m *machine) startLookups(ctx context.Context, answers chan<- weir.LookupAnswer) {
	wanted := m.lookups
	m.lookups = nil
	for _, l := range wanted {
		if ctx.Err() != nil {
			m.failLookup(l, errCutShort)
			continue
		}
		if m.resolver == nil {
			var err error
			if m.resolver, err = discovery.System(); err != nil {
				m.failLookup(l, err)
				continue
			}
		}
		m.counts.lookups++
		one, cancel := context.WithCancel(ctx)
		m.running[l.ID] = cancel
		resolver := m.resolver
		go func() {
			defer cancel()
			answers <- weir.LookUp(one, resolver, l)
		}()
	}
}

// awaitLookup waits for one answer and hands it in, or runs the core's timer if
// that comes first.
func (m *machine) awaitLookup(ctx context.Context, answers <-chan weir.LookupAnswer) {
	if len(m.running) == 0 {
		return
	}
	at, _ := m.core.Deadline() // there is one while a refresh runs
	timer := time.NewTimer(at - m.clock().Mono)
	defer timer.Stop()
	due := timer.C
	if ctx.Err() != nil {
		due = nil // all that is left is to join
	}
	select {
	case a := <-answers:
		delete(m.running, a.Lookup.ID)
		if ctx.Err() != nil && (a.SRV.Err != nil || a.Addrs.Err != nil) {
			m.failLookup(a.Lookup, errCutShort)
			return
		}
		a.HandTo(m.core, m.clock())
	case <-due:
		m.core.HandleTimer(m.clock())
	}
}

// failLookup tells the core that a lookup has no answer.
func (m *machine) failLookup(l core.Lookup, err error) {
	a := weir.LookupAnswer{Lookup: l, SRV: core.SRVAnswer{Err: err}, Addrs: core.AddrAnswer{Err: err}}
	a.HandTo(m.core, m.clock())
}

// cancelLookup is told that the answer to a lookup is no longer wanted. One that
// runs is waited for all the same.
func (m *machine) cancelLookup(id core.LookupID) {
	if cancel := m.running[id]; cancel != nil {
		cancel()
	}
	for i, l := range m.lookups {
		if l.ID == id {
			m.lookups = append(m.lookups[:i], m.lookups[i+1:]...)
			return
		}
	}
}
