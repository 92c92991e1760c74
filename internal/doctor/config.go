package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// Bounds of [Config.Probes].
const (
	DefaultProbes = 5
	MaxProbes     = 100
)

const defaultLookup = 5 * time.Second

// Config says what to examine. Client is required; everything else has defaults,
// and what stands below Progress is for tests.
type Config struct {
	// Client is the configuration of the client that gets no decision.
	Client weir.Config
	// Lookup is how long to look for servers in DNS; 0 means 5 s.
	Lookup time.Duration
	// Probes is how many requests each address is asked for its round trip: 1 to
	// 100, 0 means 5.
	Probes int
	// Progress gets a line for each thing that is done later than two seconds after
	// the begin; nil means none.
	Progress io.Writer

	// Stack opens the sockets that the requests leave from; nil is the machine's.
	Stack udp.Stack
	// Now is the machine's clock; its monotonic reading measures round trips. Nil is
	// time.Now.
	Now func() time.Time
	// Entropy is a cryptographic source; nil is the machine's.
	Entropy io.Reader
	// Knock sends a datagram from a connected socket and waits, until ctx ends, for
	// the error that an ICMP message makes of it. Nil is the machine's.
	Knock func(ctx context.Context, to netip.AddrPort, datagram []byte) error
	// Dial makes the client of the last step; nil makes a [weir.Client].
	Dial func(ctx context.Context, cfg weir.Config) (Asker, error)
}

// An Asker asks for a decision on zero tokens, as a client.
type Asker interface {
	// Ask asks once. Its error is one of the client's.
	Ask(ctx context.Context) (Answer, error)
	// Close ends the client.
	Close()
}

// An Answer is a decision on zero tokens.
type Answer struct {
	Server  ident.ServerID // who decided
	Elapsed time.Duration  // from the first send
	Round   int            // in which the answer came
}

// fill checks the configuration and fills in defaults.
func (cfg Config) fill() (Config, error) {
	if cfg.Client.Key.IsZero() {
		return cfg, &weir.ConfigError{Field: "Key", Reason: "it is required; read it with apikey.Parse"}
	}
	cfg.Probes = cmp.Or(cfg.Probes, DefaultProbes)
	if cfg.Probes < 0 || cfg.Probes > MaxProbes {
		return cfg, fmt.Errorf("doctor: %d probes are not from 1 to %d", cfg.Probes, MaxProbes)
	}
	if cfg.Lookup = cmp.Or(cfg.Lookup, defaultLookup); cfg.Lookup < 0 {
		return cfg, fmt.Errorf("doctor: %v is not above 0; it is how long to look for servers", cfg.Lookup)
	}
	c := &cfg.Client
	c.Layout = cmp.Or(c.Layout, wire.Layout2)
	if c.Policy.IsZero() {
		c.Policy = policy.Default()
	}
	if cfg.Stack == nil {
		cfg.Stack = udp.Host()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Entropy == nil {
		cfg.Entropy = rand.Reader
	}
	if cfg.Knock == nil {
		cfg.Knock = knock
	}
	if cfg.Dial == nil {
		cfg.Dial = dial
	}
	err := cfg.fillResolver()
	return cfg, err
}

// fillResolver checks where servers are to be found, and gives a configuration that
// needs DNS the machine's resolver.
func (cfg *Config) fillResolver() error {
	c := &cfg.Client
	places := 0
	for _, given := range [...]bool{c.Zone != "", c.Domain != "", len(c.Servers) > 0, c.Hosted} {
		if given {
			places++
		}
	}
	switch {
	case places != 1:
		return &weir.ConfigError{Field: "Zone, Domain, Servers, Hosted", Reason: "give exactly one of them, to say where the servers are"}
	case c.Zone != "":
		if err := discovery.CheckZone(c.Zone); err != nil {
			return &weir.ConfigError{Field: "Zone", Reason: err.Error()}
		}
	case c.Domain != "":
		if err := discovery.CheckDomain(c.Domain); err != nil {
			return &weir.ConfigError{Field: "Domain", Reason: err.Error()}
		}
	}
	if len(c.Servers) > 0 || c.Resolver != nil {
		return nil
	}
	var err error
	c.Resolver, err = discovery.System()
	return err
}

// realClient is a [weir.Client] as an [Asker].
type realClient struct{ *weir.Client }

func dial(ctx context.Context, cfg weir.Config) (Asker, error) {
	c, err := weir.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return realClient{c}, nil
}

// nothing is a request for zero tokens.
func nothing() weir.Request {
	return weir.Request{Resources: []weir.Resource{weir.Bucket(bucketName, 1, time.Millisecond).Take(0)}}
}

func (c realClient) Ask(ctx context.Context) (Answer, error) {
	d, err := c.Acquire(ctx, nothing())
	if err != nil {
		return Answer{}, err
	}
	return Answer{Server: d.Server(), Elapsed: d.Elapsed(), Round: d.Round()}, nil
}

func (c realClient) Close() { c.Client.Close() }
