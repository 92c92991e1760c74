package core

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// Config is what a core is made of. Key and Entropy are required, the rest has
// defaults.
type Config struct {
	// Key authenticates the tenant and sets the quotas.
	Key apikey.Key
	// Policy is the request policy; zero means [policy.Default]. Its horizon, in
	// milliseconds rounded up, must be within the key's DedupTTL.
	Policy policy.Policy
	// Layout is how guards and reports are laid out; zero means [wire.Layout2].
	Layout wire.Layout
	// Entropy is where identities, nonces and jitter come from: a cryptographic
	// source, except in tests and simulations. It is read during calls only.
	Entropy io.Reader
	// MaxInFlight bounds the undecided requests, 1 to [MaxInFlightLimit]; zero
	// means [DefaultMaxInFlight]. The identities of ended ones are kept until their
	// horizon beside: under r requests a second at most r times the horizon.
	MaxInFlight int
	// Domain is where servers are discovered, such as "c-7.rl.example.com". Empty
	// means that [Core.SetMembership] names them and nothing is looked up.
	Domain string
	// FailFast stops asking while nobody answers. Zero means that it does not.
	FailFast FailFastConfig
	// Refresh paces discovery. Its zero fields have defaults.
	Refresh RefreshConfig
	// Limits bounds a membership. Its zero fields have defaults.
	Limits Limits
}

// RefreshConfig paces discovery (docs/protocol.md, "Discovery"). A zero field
// has the default named at it.
type RefreshConfig struct {
	// Interval is the longest time between a good answer and the next refresh,
	// 300 s. The smallest TTL of the records shortens it.
	Interval time.Duration
	// Min is the shortest time between a good answer and the next refresh,
	// whatever TTLs say, 1 s. Not below 1 s.
	Min time.Duration
	// Forced is the shortest time between two refreshes when servers are needed
	// and none is known, or [Core.Refresh] asks, 1 s. Not below 1 s. Up to half
	// as much again is added at random.
	Forced time.Duration
	// Backoff is the wait after a first failed refresh, 1 s. It doubles with each
	// further failure up to BackoffMax, 60 s (or Interval, if that is less). Up
	// to half as much again is added at random. Not below 1 s.
	Backoff, BackoffMax time.Duration
	// Timeout is how long one refresh may take, SRV and addresses together, 10 s.
	// Lookups that have not been answered then are canceled and count as failed.
	Timeout time.Duration
	// Grace is how long after its SRV answer a refresh that began with no servers
	// known waits for all addresses, 500 ms. From then on the servers whose
	// addresses are there are taken at once, and the rest as they come, so that one
	// lookup that hangs holds back its own server only. As long as Timeout, or
	// longer, it has no effect.
	Grace time.Duration
}

// Limits bounds what DNS can make of a membership. A zero field has the default
// named at it. The excess is dropped in a fixed order, the same for every
// client: the youngest servers, and of a server the addresses that sort last.
type Limits struct {
	Servers   int // servers, 16; at most 64
	Addresses int // addresses of one server, 4; at most 64
	Endpoints int // addresses of all servers together, 64; at most 256
}

// Bounds of [Config.MaxInFlight].
const (
	DefaultMaxInFlight = 1 << 16
	MaxInFlightLimit   = 1 << 24
)

const (
	maxServers   = 64  // a bit each in a uint64
	maxEndpoints = 256 // a bit each in an endpointSet
	maxRefresh   = 365 * 24 * time.Hour
	minRefresh   = time.Second
)

// withDefaults fills the zero fields and checks all of them.
func (cfg Config) withDefaults() (Config, error) {
	if cfg.Key.IsZero() {
		return cfg, &FieldError{"Key", "it is required; parse or make one with package apikey"}
	}
	if cfg.Entropy == nil {
		return cfg, &FieldError{"Entropy", "it is required; use crypto/rand.Reader"}
	}
	if cfg.Policy.IsZero() {
		cfg.Policy = policy.Default()
	}
	if cfg.Layout == 0 {
		cfg.Layout = wire.Layout2
	}
	if cfg.Layout != wire.Layout1 && cfg.Layout != wire.Layout2 {
		return cfg, &FieldError{"Layout", fmt.Sprintf("%d is neither 1 nor 2", cfg.Layout)}
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = DefaultMaxInFlight
	}
	if cfg.MaxInFlight < 0 || cfg.MaxInFlight > MaxInFlightLimit {
		return cfg, &FieldError{"MaxInFlight", fmt.Sprintf("%d is not from 1 to %d", cfg.MaxInFlight, MaxInFlightLimit)}
	}
	cfg.Domain = strings.TrimSuffix(cfg.Domain, ".")
	if err := cfg.Refresh.fill(); err != nil {
		return cfg, err
	}
	return cfg, cfg.Limits.fill()
}

func (r *RefreshConfig) fill() error {
	for _, f := range [...]struct {
		name       string
		value      *time.Duration
		preset     time.Duration
		atLeastOne bool
	}{
		{"Interval", &r.Interval, 300 * time.Second, true},
		{"Min", &r.Min, minRefresh, true},
		{"Forced", &r.Forced, minRefresh, true},
		{"Backoff", &r.Backoff, minRefresh, true},
		{"BackoffMax", &r.BackoffMax, 60 * time.Second, true},
		{"Timeout", &r.Timeout, 10 * time.Second, false},
		{"Grace", &r.Grace, 500 * time.Millisecond, false},
	} {
		if *f.value == 0 {
			*f.value = f.preset
		}
		if *f.value < 0 || *f.value > maxRefresh {
			return &FieldError{"Refresh." + f.name, fmt.Sprintf("%v is not from 0 to %v", *f.value, maxRefresh)}
		}
		if f.atLeastOne && *f.value < minRefresh {
			return &FieldError{"Refresh." + f.name, fmt.Sprintf("%v is below %v, the least that DNS servers are asked at", *f.value, minRefresh)}
		}
	}
	if r.Min > r.Interval {
		return &FieldError{"Refresh.Min", fmt.Sprintf("%v is above the interval of %v", r.Min, r.Interval)}
	}
	r.BackoffMax = min(r.BackoffMax, r.Interval)
	if r.Backoff > r.BackoffMax {
		return &FieldError{"Refresh.Backoff", fmt.Sprintf("%v is above %v, the lesser of BackoffMax and Interval", r.Backoff, r.BackoffMax)}
	}
	return nil
}

func (l *Limits) fill() error {
	for _, f := range [...]struct {
		name        string
		value       *int
		preset, top int
	}{
		{"Servers", &l.Servers, 16, maxServers},
		{"Addresses", &l.Addresses, 4, 64},
		{"Endpoints", &l.Endpoints, 64, maxEndpoints},
	} {
		if *f.value == 0 {
			*f.value = f.preset
		}
		if *f.value < 0 || *f.value > f.top {
			return &FieldError{"Limits." + f.name, fmt.Sprintf("%d is not from 1 to %d", *f.value, f.top)}
		}
	}
	return nil
}
