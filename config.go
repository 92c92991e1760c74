package weir

import (
	"log/slog"
	"slices"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// Config is what a client is made of. It needs a Key, and exactly one of Zone,
// Domain, Servers and Hosted; everything else has defaults.
type Config struct {
	// Key is the API key, from apikey.Parse. In cookie mode the key's secret
	// travels in clear in every datagram; only AES keeps anyone on the path from
	// forging decisions (docs/protocol.md, "Authentication").
	Key apikey.Key

	// Zone is a DNS zone such as "rl.example.com", in which the servers of the
	// key with ID 7 are found under c-7.rl.example.com.
	Zone string
	// Domain is the DNS domain under which the servers are found, whole.
	Domain string
	// Servers are the servers themselves, where there is no DNS for them: see
	// discovery.ParseServer. A server that restarts has another ID.
	Servers []discovery.Server
	// Hosted finds the servers of the hosted Rate Limitly service. There is no
	// default to any service: a key travels only where it was told to.
	Hosted bool

	// Resolver looks the servers up; nil means discovery.System, the machine's
	// own.
	Resolver discovery.Resolver
	// Policy says how long servers are waited for and how often they are asked
	// again; zero means policy.Default (docs/policy.md).
	Policy policy.Policy
	// Layout is how guards and reports are laid out: 0 means 2, and 1 is for
	// servers older than August 2026.
	Layout wire.Layout
	// MaxInFlight bounds the undecided requests; 0 means 65536. One more fails at
	// once with [ErrTooManyInFlight]: nothing queues.
	MaxInFlight int
	// FailFast answers at once with [ErrFailFast] while no server answers, so that
	// an outage of all of them does not cost every caller the horizon; zero means
	// that it does not (docs/client.md, "Failing fast").
	FailFast core.FailFastConfig
	// Refresh paces discovery; its zero fields have defaults.
	Refresh core.RefreshConfig
	// Limits bounds what DNS can make of a membership; its zero fields have
	// defaults.
	Limits core.Limits
	// SocketBuffer is the size in bytes of each socket's two buffers in the kernel;
	// 0 means 1 MiB. The kernel may give less without saying so. The one for
	// receiving holds the answers to what is in flight, about 1 KiB each; the one
	// for sending what a dead server on the same link has not taken, until the
	// kernel gives it up.
	SocketBuffer int
	// NoBursts moves datagrams one by one. Otherwise those that leave for one server at the same time, and
	// answers that come close together, go many in one buffer of the system's, where it can do that
	// (Linux; docs/server.md, "Bursts").
	NoBursts bool
	// Logger gets what happens to discovery and sockets; nil means no log. It is
	// never given a secret, and nothing for a request. It is called in a goroutine
	// of its own, for one line at a time: one that blocks holds up Close and further
	// lines, which are dropped when many wait, and nothing else. It must not call
	// Close.
	Logger *slog.Logger
}

// core checks the part of the configuration that is this package's and returns
// the core's, without entropy, and the servers of a static membership.
func (cfg *Config) core() (core.Config, []core.Server, error) {
	if cfg.Key.IsZero() {
		return core.Config{}, nil, &ConfigError{"Key", "it is required; read it with apikey.Parse"}
	}
	domain, err := cfg.domain()
	if err != nil {
		return core.Config{}, nil, err
	}
	if cfg.SocketBuffer < 0 {
		return core.Config{}, nil, &ConfigError{"SocketBuffer", "it is negative; give a size in bytes, or 0 for 1 MiB"}
	}
	servers := make([]core.Server, len(cfg.Servers))
	for i, s := range cfg.Servers {
		servers[i] = core.Server{ID: s.ID, Endpoints: slices.Clone(s.Addrs)}
	}
	return core.Config{
		Key:         cfg.Key,
		Policy:      cfg.Policy,
		Layout:      cfg.Layout,
		MaxInFlight: cfg.MaxInFlight,
		Domain:      domain,
		FailFast:    cfg.FailFast,
		Refresh:     cfg.Refresh,
		Limits:      cfg.Limits,
	}, servers, nil
}

// domain returns where servers are discovered, "" for a static membership.
func (cfg *Config) domain() (string, error) {
	set := 0
	for _, given := range [...]bool{cfg.Zone != "", cfg.Domain != "", len(cfg.Servers) > 0, cfg.Hosted} {
		if given {
			set++
		}
	}
	if set != 1 {
		return "", &ConfigError{"Zone, Domain, Servers, Hosted", "give exactly one of them, to say where the servers are"}
	}
	switch {
	case cfg.Zone != "":
		if err := discovery.CheckZone(cfg.Zone); err != nil {
			return "", &ConfigError{"Zone", err.Error()}
		}
		return discovery.Domain(cfg.Zone, cfg.Key.ID()), nil
	case cfg.Domain != "":
		if err := discovery.CheckDomain(cfg.Domain); err != nil {
			return "", &ConfigError{"Domain", err.Error()}
		}
		return cfg.Domain, nil
	case cfg.Hosted:
		return discovery.Domain(discovery.HostedZone, cfg.Key.ID()), nil
	}
	return "", nil
}
