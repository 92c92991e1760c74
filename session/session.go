package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// Config is what a session is made of. It needs exactly one of Zone, Domain,
// Servers and Hosted; everything else has defaults. The key is given with each
// call. The fields are those of [weir.Config].
type Config struct {
	// Zone is a DNS zone such as "rl.example.com", in which the servers of the
	// key with ID 7 are found under c-7.rl.example.com.
	Zone string
	// Domain is the DNS domain under which the servers are found, whole.
	Domain string
	// Servers are the servers themselves, where there is no DNS for them.
	Servers []discovery.Server
	// Hosted finds the servers of the hosted Rate Limitly service.
	Hosted bool

	// Resolver looks the servers up; nil means discovery.System, the machine's
	// own. Lookups of one call may run at the same time, each in a goroutine that
	// the call waits for: a resolver has to return when its context ends.
	Resolver discovery.Resolver
	// Policy says how long servers are waited for and how often they are asked
	// again; zero means policy.Default (docs/policy.md). Its DeliveryDelay counts as
	// 0, since nobody would send anything after the call.
	Policy policy.Policy
	// Layout is how guards and reports are laid out: 0 means 2, and 1 is for
	// servers older than August 2026.
	Layout wire.Layout
	// Refresh paces discovery; its zero fields have defaults. A call that finds
	// that what DNS said has run out looks it up first, so Refresh.Timeout is how
	// much longer than the policy's horizon a call may take.
	Refresh core.RefreshConfig
	// Limits bounds what DNS can make of a membership; its zero fields have
	// defaults.
	Limits core.Limits

	// Stack opens the UDP sockets; nil is the machine's. Anything else is for tests.
	Stack udp.Stack
}

// New returns the first state of a session. It does no I/O, and nothing needs to
// be closed while no other call was made. Errors are of class *[weir.ConfigError].
// What depends on the key is checked by the calls that are given one.
func New(cfg Config) (State, error) {
	return newState(cfg, systemClock(), rand.Reader)
}

func newState(cfg Config, clock func() core.Time, entropy io.Reader) (State, error) {
	if err := cfg.check(); err != nil {
		return State{}, err
	}
	if cfg.Stack == nil {
		cfg.Stack = udp.Host()
	}
	cfg.Servers = cloneServers(cfg.Servers)
	m := &machine{cfg: cfg, clock: clock, entropy: entropy, resolver: cfg.Resolver}
	m.out.Payload = make([]byte, 0, wire.MaxDatagram)
	return State{m: m, view: new(view)}, nil
}

// Execute asks once, under a key, and returns the decision and the next state.
//
// Without a decision the error is one of package weir's (ErrTimeout,
// ErrNoServers, ErrIO, *ConfigError), ctx's own, weir.ErrClosed or [ErrSpent];
// but for the last two the state that comes back is a new one, and s is spent.
// After an error tokens may have been consumed.
//
// Servers are looked up before the request is sent, when none is known yet, the
// key is not that of the last call, or what DNS said of them has run out. That
// takes at most Config.Refresh.Timeout. When it fails, the servers known stay,
// the request is sent to them, and the next try waits for a while, with some
// jitter. A request for nothing is granted at once and looks up nothing.
//
// When ctx ends, Execute returns at once; whether tokens were consumed is then
// unknown.
func Execute(ctx context.Context, s State, key apikey.Key, r weir.Request) (State, weir.Decision, error) {
	m, err := s.take()
	if err != nil {
		return s, weir.Decision{}, err
	}
	d, err := m.execute(ctx, key, r)
	return m.give(), d, err
}

// Discover looks the servers of a key up as [Execute] does, and asks nobody for a
// decision: it is for programs that only report, and for those that want to know
// at their start whether there are servers. The error is nil if some are known in
// the end, weir.ErrNoServers with the reason if not, or one of those of Execute.
func Discover(ctx context.Context, s State, key apikey.Key) (State, error) {
	m, err := s.take()
	if err != nil {
		return s, err
	}
	err = m.discover(ctx, key)
	return m.give(), err
}

// Report sends observations to every known server, once, in as many datagrams as
// they need. It waits for nothing but the sending, nothing answers, and what is
// lost on the way is lost.
//
// Errors, after which nothing was sent: weir.ErrNoServers, since a report never
// looks servers up ([Execute] and [Discover] do), *weir.ConfigError,
// weir.ErrClosed and [ErrSpent]. A datagram that cannot be sent is counted in
// [State.Stats] and is no error.
func Report(s State, key apikey.Key, obs ...weir.Observation) (State, error) {
	m, err := s.take()
	if err != nil {
		return s, err
	}
	err = m.report(key, obs)
	return m.give(), err
}

// Close ends the session: its sockets are closed, what it knew of servers is
// forgotten, and every later call of any of its states but Close fails with
// weir.ErrClosed. It is idempotent. The error is nil, or [ErrSpent] for a state
// that another call replaced or is working with: then nothing was closed. A
// deferred Close has to take the state of its own time:
//
//	defer func() { _, _ = session.Close(s) }()
func Close(s State) (State, error) {
	m, err := s.take()
	switch {
	case errors.Is(err, weir.ErrClosed):
		return s, nil
	case err != nil:
		return s, err
	}
	m.close()
	return m.retire(), nil
}

// of returns the configuration of a client that would do the same under a key.
func (cfg *Config) of(key apikey.Key) weir.Config {
	return weir.Config{
		Key:         key,
		Zone:        cfg.Zone,
		Domain:      cfg.Domain,
		Servers:     cfg.Servers,
		Hosted:      cfg.Hosted,
		Policy:      undelayed(cfg.Policy),
		Layout:      cfg.Layout,
		MaxInFlight: 1,
		Refresh:     cfg.Refresh,
		Limits:      cfg.Limits,
	}
}

// undelayed is a policy whose completion delivery is made with the decision. One that
// is an error stays it.
func undelayed(p policy.Policy) policy.Policy {
	if _, err := p.Compile(); err == nil {
		p.DeliveryDelay = 0
	}
	return p
}

// core makes a core for a key.
func (cfg *Config) core(key apikey.Key, now core.Time, entropy io.Reader) (*core.Core, error) {
	of := cfg.of(key)
	made, servers, err := of.Core()
	if err != nil {
		return nil, err
	}
	made.Entropy = entropy
	c, err := core.New(made)
	if err == nil && made.Domain == "" {
		err = c.SetMembership(now, servers)
	}
	return c, weir.CoreError(err)
}

// check finds everything that is wrong under any key: it makes a core for one
// that allows whatever can be allowed.
func (cfg *Config) check() error {
	quotas := apikey.Quotas{
		RateBuckets: math.MaxUint32, LatencyServices: math.MaxUint32, MetricsLabels: math.MaxUint32,
		LatencyBufferSize: math.MaxUint32, DedupTTL: math.MaxUint32, RateWindow: math.MaxUint32,
	}
	nothingSecret := bytes.Repeat([]byte{1}, 256)
	key, err := apikey.NewLegacy(apikey.AuthAES, 0, quotas, bytes.NewReader(nothingSecret))
	if err == nil {
		_, err = cfg.core(key, core.Time{}, bytes.NewReader(nothingSecret))
	}
	return err
}

// systemClock returns the two clocks of the core, of one reading each time: the
// monotonic one since now, for deadlines, and the wall clock, for datagrams.
func systemClock() func() core.Time {
	origin := time.Now()
	return func() core.Time {
		t := time.Now()
		return core.Time{Mono: t.Sub(origin), Wall: t.UnixMilli()}
	}
}
