package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
)

// machine is what the states of a session stand for. It belongs to the call that
// took the turn, and that call's goroutine is the only one that touches it, but
// for the readers of sockets and the lookups that the call waits for.
type machine struct {
	turn     atomic.Uint64
	cfg      Config
	clock    func() core.Time
	entropy  io.Reader
	resolver discovery.Resolver // nil until it is needed

	key  apikey.Key
	core *core.Core // for the key; nil until a call has brought one

	servers []discovery.Server // as the core knows them; never changed
	lookups []core.Lookup      // that the core wants and nobody has begun
	cause   error              // of the last discovery that failed
	running map[core.LookupID]context.CancelFunc

	links   [families]link
	drained []*socket // replaced during this call
	opened  core.SocketID

	// The request of this call.
	asked    weir.Request
	decided  bool
	decision weir.Decision
	err      error

	counts counts
	out    core.Send
	event  core.Event
}

// counts are those of the statistics that are not the core's.
type counts struct {
	lookups, rebinds, steeringFailures, readErrors uint64
}

// execute is [Execute].
func (m *machine) execute(ctx context.Context, key apikey.Key, r weir.Request) (weir.Decision, error) {
	defer m.retireSockets()
	if err := ctx.Err(); err != nil {
		return weir.Decision{}, undecided(err)
	}
	if err := m.adopt(key); err != nil {
		return weir.Decision{}, err
	}
	encoded, err := r.Encode(m.cfg.Layout)
	if err != nil {
		return weir.Decision{}, err
	}
	if len(r.Resources)+len(r.Guards) > 0 {
		if err := m.prepare(ctx); err != nil {
			return weir.Decision{}, err
		}
	}
	m.asked, m.decided, m.decision, m.err = r, false, weir.Decision{}, nil
	defer func() { m.asked = weir.Request{} }() // nothing is kept of it
	id, err := m.submit(ctx, &encoded)
	if err != nil {
		return weir.Decision{}, err
	}
	err = m.await(ctx, id)
	return m.decision, err
}

// report is [Report].
func (m *machine) report(key apikey.Key, obs []weir.Observation) error {
	defer m.retireSockets()
	if err := m.adopt(key); err != nil {
		return err
	}
	encoded, err := weir.EncodeReport(m.cfg.Layout, obs...)
	if err != nil {
		return err
	}
	err = m.core.Report(m.clock(), encoded)
	m.send()
	m.listen()
	return m.refused(err)
}

// adopt makes key the one that the session works with. Sockets stay; answers to
// what was asked under another key name nothing that the new core knows.
func (m *machine) adopt(key apikey.Key) error {
	if m.core != nil && m.key.Equal(key) {
		return nil
	}
	now := m.clock()
	c, err := m.cfg.core(key, now, m.entropy)
	if err != nil {
		return err
	}
	m.core, m.key = c, key
	m.servers, m.lookups, m.cause = nil, nil, nil
	for _, s := range m.sockets() {
		c.Rebound(now, s.id, s.id) // as deaf as one that was just replaced: it may have been
	}
	m.listen()
	return nil
}

// prepare does what is due before something is sent: it hands in what has come
// since the last call, follows advice, and looks up the servers anew.
func (m *machine) prepare(ctx context.Context) error {
	m.receive()
	waiting := len(m.lookups) > 0
	m.core.HandleTimer(m.clock())
	m.listen()
	if waiting && len(m.lookups) == 0 {
		// A refresh that fell due during a call, or a report without servers, was
		// left to the next call. It came too late.
		m.core.Refresh(m.clock())
		m.listen()
	}
	if err := m.lookUp(ctx); err != nil {
		return err
	}
	m.steer()
	return nil
}

// submit starts the request, if need be after another look for servers.
func (m *machine) submit(ctx context.Context, r *core.Request) (core.RequestID, error) {
	id, err := m.core.Submit(m.clock(), r)
	m.listen()
	if !errors.Is(err, core.ErrNoServers) {
		return id, m.refused(err)
	}
	if err := m.outwait(ctx); err != nil {
		return 0, err
	}
	if len(m.lookups) > 0 {
		if err := m.lookUp(ctx); err != nil {
			return 0, err
		}
		id, err = m.core.Submit(m.clock(), r)
		m.listen()
	}
	return id, m.refused(err)
}

// outwait waits for the next refresh and begins it, if the last one failed only
// because an earlier call had no time for it: that is nothing that DNS has said.
func (m *machine) outwait(ctx context.Context) error {
	if len(m.lookups) > 0 || !errors.Is(m.cause, errCutShort) {
		return nil
	}
	at, _ := m.core.Deadline() // there is one while no server is known
	timer := time.NewTimer(at - m.clock().Mono)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return noServers(ctx.Err())
	}
	m.core.HandleTimer(m.clock())
	m.listen()
	return nil
}

// await does what the core says until the request has ended.
func (m *machine) await(ctx context.Context, id core.RequestID) error {
	for {
		m.send()
		m.listen()
		if m.decided {
			return m.err
		}
		if err := ctx.Err(); err != nil {
			m.core.Cancel(m.clock(), id)
			return undecided(err)
		}
		at, _ := m.core.Deadline() // there is one while a request is open
		m.wait(ctx, at)
		m.receive()
		if ctx.Err() == nil {
			m.core.HandleTimer(m.clock())
		}
	}
}

// send writes what the core wants sent.
func (m *machine) send() {
	for m.core.PollSend(m.clock(), &m.out) {
		if err := m.write(&m.out); err != nil {
			m.core.HandleSendFailure(m.clock(), m.out.Ref, err)
		}
	}
}

// listen takes what the core tells.
func (m *machine) listen() {
	for m.core.PollEvent(&m.event) {
		switch ev := &m.event; ev.Kind {
		case core.EventCompleted:
			m.decision, m.err = m.asked.Decision(&ev.Completion)
			m.decided = true
		case core.EventLookup:
			m.lookups = append(m.lookups, ev.Lookup)
		case core.EventCancelLookup:
			m.cancelLookup(ev.Lookup.ID)
		case core.EventSteer:
			m.advised(ev.Socket)
		case core.EventMembershipChanged:
			m.servers = make([]discovery.Server, len(ev.Membership))
			for i, s := range ev.Membership {
				m.servers[i] = discovery.Server{ID: s.ID, Addrs: s.Endpoints}
			}
		case core.EventDiscoveryFailed:
			m.cause = ev.Err
		}
	}
	m.event = core.Event{}
}

// close lets go of everything.
func (m *machine) close() {
	m.retireSockets()
	if m.core != nil {
		m.core.Close(m.clock())
		m.listen()
	}
	for f := range m.links {
		if s := m.links[f].current; s != nil {
			s.conn.Close()
		}
		m.links[f] = link{}
	}
	m.servers, m.lookups = nil, nil
}

var errNeverAsked = errors.New("none were looked up under this key; Discover and Execute do")

// noServers is weir.ErrNoServers with the reason.
func noServers(cause error) error {
	if cause == nil {
		cause = errNeverAsked
	}
	return fmt.Errorf("%w: %w", weir.ErrNoServers, cause)
}

// refused is the error of what the core refused to do, nil if it did not.
func (m *machine) refused(err error) error {
	if err = weir.CoreError(err); errors.Is(err, weir.ErrNoServers) {
		return noServers(m.cause)
	}
	return err
}

// undecided is the error of a call whose context ended.
func undecided(err error) error { return fmt.Errorf("session: no decision: %w", err) }
