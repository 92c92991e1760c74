package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// clientFlags say which servers a command asks, and how.
type clientFlags struct {
	keySource
	AllowLegacyKey bool          `help:"Accept a key of the legacy format."`
	Domain         string        `placeholder:"NAME" help:"Find the servers under this DNS domain (WEIR_DOMAIN)."`
	Zone           string        `placeholder:"NAME" help:"Find the servers under c-<key ID> in this DNS zone (WEIR_ZONE)."`
	Server         []string      `sep:"none" placeholder:"ID@IP:PORT[,IP:PORT]" help:"Ask this server instead of those that DNS names; may be repeated."`
	Hosted         bool          `help:"Ask the servers of the hosted service."`
	Resolver       string        `placeholder:"IP:PORT[,IP:PORT]" help:"Ask these DNS servers instead of the machine's (WEIR_RESOLVER)."`
	Layout         int           `enum:"1,2" default:"2" placeholder:"N" help:"Layout of guards and reports: 2 (the default), or 1 for servers older than August 2026."`
	Policy         string        `placeholder:"TEXT" help:"Request policy: a preset (default, strict-oldest, oldest-preferred, fastest-valid, bounded-collection), fields such as \"unit=5ms replays=2\", or both."`
	Timeout        time.Duration `default:"5s" placeholder:"DURATION" help:"How long to look for servers (5s)."`
}

// config is what the flags, and the environment where they are silent, make of a
// client.
func (f *clientFlags) config(std *stdio) (weir.Config, error) {
	key, err := f.require(std, f.AllowLegacyKey)
	if err != nil {
		return weir.Config{}, err
	}
	cfg := weir.Config{Key: key, Layout: wire.Layout(f.Layout)}
	if err := f.place(std, &cfg); err != nil {
		return weir.Config{}, usage(err)
	}
	if cfg.Policy, err = policy.Parse(f.Policy); err != nil {
		return weir.Config{}, usage(fmt.Errorf("--policy: %w", err))
	}
	if f.Timeout <= 0 {
		return weir.Config{}, usage(fmt.Errorf("--timeout: %v is not above 0", f.Timeout))
	}
	return cfg, nil
}

// place sets where the servers are found. A flag outdoes the environment.
func (f *clientFlags) place(std *stdio, cfg *weir.Config) error {
	cfg.Domain, cfg.Zone, cfg.Hosted = f.Domain, f.Zone, f.Hosted
	for _, text := range f.Server {
		server, err := discovery.ParseServer(text)
		if err != nil {
			return fmt.Errorf("--server: %w", err)
		}
		cfg.Servers = append(cfg.Servers, server)
	}
	if cfg.Domain == "" && cfg.Zone == "" && !cfg.Hosted && len(cfg.Servers) == 0 {
		cfg.Domain, cfg.Zone = std.getenv("WEIR_DOMAIN"), std.getenv("WEIR_ZONE")
	}
	places := 0
	for _, given := range []bool{cfg.Domain != "", cfg.Zone != "", cfg.Hosted, len(cfg.Servers) > 0} {
		if given {
			places++
		}
	}
	if places == 0 {
		return errors.New("no servers to ask: set WEIR_DOMAIN or WEIR_ZONE, or use --domain, --zone, --server or --hosted")
	}
	if places > 1 {
		return errors.New("more than one place to find servers in: give only one of domain, zone, --server and --hosted")
	}
	return f.resolver(std, cfg)
}

func (f *clientFlags) resolver(std *stdio, cfg *weir.Config) (err error) {
	servers, from := f.Resolver, "--resolver"
	if servers == "" {
		servers, from = std.getenv("WEIR_RESOLVER"), "WEIR_RESOLVER"
	}
	if servers == "" || len(cfg.Servers) > 0 {
		return nil
	}
	if cfg.Resolver, err = discovery.NewDNS(strings.Split(servers, ",")...); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// noDecision gives an error of the client its exit status, and says what finds out
// more.
func noDecision(err error) error {
	var config *weir.ConfigError
	if errors.As(err, &config) {
		return usage(err)
	}
	if errors.Is(err, weir.ErrTimeout) || errors.Is(err, weir.ErrNoServers) {
		err = fmt.Errorf("%w; weir doctor, with the same key and flags, finds out why", err)
	}
	return statusError{code: exitNoDecision, err: err}
}
