package server

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// directory holds the tenants of one moment by key ID. It is never changed: a reload
// makes another, so that workers read it without a lock.
type directory map[uint64]*tenant

// tenant is one tenant as the configuration has it, with the state that outlives the
// configuration.
type tenant struct {
	asked Tenant // as it was configured
	name  string
	keys  []*wire.Credential // newest first
	mute  bool               // the newest key's quotas let no request be answered
	// maxRate is how many authentic datagrams a second the tenant may send; 0: any number.
	maxRate int
	shadow  bool // rejections are answered so that they pass
	// room is what bounds its memory, and wanted what would if there were no memory limit.
	room, wanted room
	state        *tenantState
}

// open authenticates a datagram by any of the tenant's keys. It returns the PDU and
// the index of the key that opened it.
func (t *tenant) open(e *wire.Envelope, scratch *wire.Scratch) (pdu []byte, key int, err error) {
	failure := wire.ErrMode
	for i, c := range t.keys {
		pdu, err := c.Open(e, scratch)
		if err == nil {
			return pdu, i, nil
		}
		if c.Auth() == e.Auth {
			failure = err
		}
	}
	return nil, 0, failure
}

// mode returns the tenant's mode by name.
func (t *tenant) mode() string {
	if t.shadow {
		return modeShadow
	}
	return modeEnforce
}

// tenantState is what belongs to a key ID, whatever its tenant is called and by which
// keys it is reached.
type tenantState struct {
	mu     sync.Mutex // guards the engine and gone
	engine *limiter.Engine
	gone   bool // the tenant was removed; a worker may still hold its state

	gate   rateGate
	counts tenantCounts
	labels labelTable
}

// decide lets the engine decide a request; ok is false if the tenant has gone
// meanwhile. Only here and in observe do workers wait for each other.
func (s *tenantState) decide(now limiter.Time, h *wire.Header, v *wire.RequestView, a *wire.Answer) (verdict limiter.Verdict, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return 0, false
	}
	return s.engine.Decide(now, h, v, a), true
}

// observe lets the engine take in a latency report; ok is false if the tenant has gone
// meanwhile.
func (s *tenantState) observe(now limiter.Time, h *wire.Header, v *wire.ReportView) (verdict limiter.Verdict, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return 0, false
	}
	return s.engine.Observe(now, h, v), true
}

// bury ends the state: from its return on nothing is executed by it any more. It
// returns the time, in Unix ms, that nothing which was ever executed is stamped after.
func (s *tenantState) bury() (latest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	return s.engine.Stats().Latest
}

func (s *tenantState) stats() limiter.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Stats()
}

func (s *tenantState) reconfigure(c limiter.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Reconfigure(c)
}

// registry holds the current directory and makes the next one.
type registry struct {
	rules   engineRules
	current atomic.Pointer[directory]

	mu sync.Mutex // one change at a time; guards what follows
	// removed has the tenants that went, by key ID: the time in Unix ms that nothing
	// which they executed is stamped after. What is too old to be fresh is left out, and
	// forgotten is not below it.
	removed   map[uint64]uint64
	forgotten uint64
}

// engineRules are what every tenant's engine has from the server.
type engineRules struct {
	skew, dedupCap          uint32 // ms
	identities, answerBytes int
	maxLabels               int
	memoryLimit             int64 // bytes that all tenants may come to hold; 0: any number
	memoryStrict            bool  // refuse tenants over the limit instead of clamping them
	entropy                 io.Reader
}

func newRegistry(rules engineRules) *registry {
	r := &registry{rules: rules, removed: make(map[uint64]uint64)}
	r.current.Store(&directory{})
	return r
}

// tenants returns the current directory.
func (r *registry) tenants() directory { return *r.current.Load() }

// keyIDs returns the tenants' key IDs in no order; never nil.
func (r *registry) keyIDs() []uint64 {
	return slices.AppendSeq([]uint64{}, maps.Keys(r.tenants()))
}

// change is what a new list of tenants changed.
type change struct {
	tenants                 int
	added, removed, changed []string  // names, in no order
	resized                 []*tenant // those whose room is new or another than before
}

// set replaces the tenants by a list that checkTenants passed. The state of those who
// stay, by key ID, stays; that of those who go is dropped. On an error everything is
// as it was.
func (r *registry) set(now limiter.Time, tenants []Tenant) (change, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, next := r.tenants(), make(directory, len(tenants))
	ch := change{tenants: len(tenants)}
	plan, err := r.plan(tenants)
	if err != nil {
		return change{}, err
	}
	for i := range tenants {
		id := tenants[i].Keys[0].ID()
		t, err := newTenant(&tenants[i])
		if err != nil {
			return change{}, err
		}
		t.room, t.wanted = plan.given[i], plan.wanted[i]
		was := old[id]
		if was != nil {
			t.state = was.state
			if !t.asked.equal(&was.asked) {
				ch.changed = append(ch.changed, t.name)
			}
		} else {
			ch.added = append(ch.added, t.name)
			if t.state, err = r.newState(now, id, t); err != nil {
				return change{}, err
			}
		}
		if was == nil || was.room.parts() != t.room.parts() {
			ch.resized = append(ch.resized, t)
		}
		next[id] = t
	}
	if err := configure(next); err != nil {
		return change{}, err
	}
	r.current.Store(&next)
	ch.removed = r.bury(now, old, next)
	return ch, nil
}

func newTenant(t *Tenant) (*tenant, error) {
	made := &tenant{asked: *t, name: t.Name, mute: t.Keys[0].Quotas().DedupTTL == 0, maxRate: t.MaxRate, shadow: t.Shadow}
	made.asked.Keys = slices.Clone(t.Keys) // the caller may change its own
	for _, k := range t.Keys {
		c, err := wire.NewCredential(k)
		if err != nil {
			return nil, fmt.Errorf("server: tenant %s: %w", t.Name, err)
		}
		made.keys = append(made.keys, c)
	}
	return made, nil
}

// newState makes the state of a tenant that there was not. Its floor begins now, or,
// if its key ID was here before, where that ended: what an earlier process or an
// earlier tenant of this key ID executed is not executed again.
func (r *registry) newState(now limiter.Time, id uint64, t *tenant) (*tenantState, error) {
	c := t.room.engine
	latest, wasHere := r.removed[id]
	if wasHere {
		c.Start = latest // also before now: so it misses nothing by being gone for a moment
	} else {
		c.Start = max(now.Wall, r.forgotten)
	}
	if _, err := io.ReadFull(r.rules.entropy, c.Seed[:]); err != nil {
		return nil, fmt.Errorf("server: tenant %s: drawing a hash seed: %w", t.name, err)
	}
	e, err := limiter.New(c)
	if err != nil {
		return nil, fmt.Errorf("server: tenant %s: %w", t.name, err)
	}
	return &tenantState{engine: e}, nil
}

// plan divides memory among the tenants of a list.
func (r *registry) plan(tenants []Tenant) (memoryPlan, error) {
	wanted := make([]room, len(tenants))
	for i := range tenants {
		t := &tenants[i]
		wanted[i] = room{engine: r.engineConfig(t), labels: r.labelQuota(t), keys: len(t.Keys)}
	}
	return planMemory(wanted, r.rules.memoryLimit, r.rules.memoryStrict)
}

// engineConfig returns the part of an engine's configuration that a reload may change, as
// the tenant's newest key and the server want it.
func (r *registry) engineConfig(t *Tenant) limiter.Config {
	q := t.Keys[0].Quotas()
	return limiter.Config{
		RateBuckets:       min(q.RateBuckets, limiter.MaxRecords),
		LatencyServices:   min(q.LatencyServices, limiter.MaxRecords),
		LatencyBufferSize: min(q.LatencyBufferSize, limiter.MaxSamples),
		DedupTTLMax:       min(q.DedupTTL, r.rules.dedupCap),
		WindowMax:         q.RateWindow,
		Skew:              r.rules.skew,
		Identities:        min(orDefault(r.rules.identities, limiter.DefaultIdentities), limiter.MaxRecords),
		AnswerBytes:       orDefault(r.rules.answerBytes, limiter.DefaultAnswerBytes),
		Estimator:         t.Estimator,
		Pacing:            !t.NoPacing,
		Shadow:            t.Shadow,
	}
}

// configure gives every tenant's state the bounds of its room.
func configure(next directory) error {
	for _, t := range next {
		if err := t.state.reconfigure(t.room.engine); err != nil {
			return fmt.Errorf("server: tenant %s: %w", t.name, err)
		}
		t.state.labels.setQuota(t.room.labels)
	}
	return nil
}

func (r *registry) labelQuota(t *Tenant) int {
	return int(min(int64(t.Keys[0].Quotas().MetricsLabels), int64(r.rules.maxLabels)))
}

// bury ends the tenants that went and returns their names. What they executed is kept in
// mind for as long as a datagram of it could be fresh.
func (r *registry) bury(now limiter.Time, old, next directory) (names []string) {
	for id, latest := range r.removed {
		switch {
		case next[id] != nil: // its engine knows
			delete(r.removed, id)
		case latest+uint64(r.rules.skew) < now.Wall:
			// Should the clock go back, forgotten stands for it.
			r.forgotten = max(r.forgotten, latest)
			delete(r.removed, id)
		}
	}
	for id, t := range old {
		if next[id] == nil {
			r.removed[id] = t.state.bury()
			names = append(names, t.name)
		}
	}
	return names
}
