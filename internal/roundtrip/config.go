package roundtrip

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// Bounds of a [Config], and its defaults.
const (
	DefaultFor     = 30 * time.Second
	MaxFor         = 24 * time.Hour
	DefaultWarmUp  = time.Second
	MaxWarmUp      = time.Hour
	DefaultRate    = 50
	MaxRate        = 1000
	DefaultTimeout = time.Second
	MaxTimeout     = Longest
)

// Config says what to measure. Key and Servers are required. The zero value of everything
// else is its default, but for WarmUp; what stands below Progress is for tests.
type Config struct {
	Key     apikey.Key
	Servers []discovery.Server
	Layout  wire.Layout // 2

	For     time.Duration // how long questions count: 30 s, at most a day
	WarmUp  time.Duration // how long they do not, before that: 0 is none, at most an hour
	Rate    int           // questions a second to each address: 50, at most 1000
	Timeout time.Duration // what takes longer is lost: 1 s, at most 60 s

	// Progress is called now and then, by one goroutine at a time, with how much of the
	// time has passed. Nil means that nobody wants to know.
	Progress func(passed, all time.Duration)

	// Stack opens the sockets; nil is the machine's.
	Stack udp.Stack
	// Now is the machine's clock; its monotonic reading measures. Nil is time.Now.
	Now func() time.Time
	// Entropy is a cryptographic source; nil is the machine's.
	Entropy io.Reader
}

// fill checks the configuration and fills in defaults.
func (cfg Config) fill() (Config, error) {
	cfg.Layout = cmp.Or(cfg.Layout, wire.Layout2)
	cfg.For = cmp.Or(cfg.For, DefaultFor)
	cfg.Rate = cmp.Or(cfg.Rate, DefaultRate)
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	if cfg.Stack == nil {
		cfg.Stack = udp.Host()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Entropy == nil {
		cfg.Entropy = rand.Reader
	}
	switch {
	case cfg.Key.IsZero():
		return cfg, errors.New("roundtrip: there is no key; read one with apikey.Parse")
	case len(cfg.Servers) == 0:
		return cfg, errors.New("roundtrip: there are no servers to ask; look them up with weir.Dial")
	case cfg.For < 0 || cfg.For > MaxFor:
		return cfg, fmt.Errorf("roundtrip: %v is not above 0 and at most %v; it is how long to measure", cfg.For, MaxFor)
	case cfg.WarmUp < 0 || cfg.WarmUp > MaxWarmUp:
		return cfg, fmt.Errorf("roundtrip: a warm-up of %v is not from 0 to %v", cfg.WarmUp, MaxWarmUp)
	case cfg.Rate < 0 || cfg.Rate > MaxRate:
		return cfg, fmt.Errorf("roundtrip: %d questions a second are not from 1 to %d", cfg.Rate, MaxRate)
	case cfg.Timeout < time.Millisecond || cfg.Timeout > MaxTimeout:
		return cfg, fmt.Errorf("roundtrip: a timeout of %v is not from 1 ms to %v", cfg.Timeout, MaxTimeout)
	}
	return cfg, nil
}

// dedupTTL is how long a server is to remember a question, and how long one may lie in
// its queue: in ms, and within the key's quota.
func (cfg *Config) dedupTTL() uint32 {
	return max(1, min(uint32(cfg.Timeout.Milliseconds()), cfg.Key.Quotas().DedupTTL))
}
