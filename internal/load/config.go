package load

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// Bounds of a [Config], and its defaults.
const (
	DefaultFlows    = 16
	MaxFlows        = 4096
	DefaultInFlight = 64
	MaxInFlight     = 1 << 20
	MaxRate         = 10_000_000
	DefaultFor      = 10 * time.Second
	MaxFor          = 24 * time.Hour
	MaxWarmUp       = time.Hour
	DefaultTimeout  = time.Second
	MaxTimeout      = time.Minute
	MaxBuckets      = 10_000_000
	MaxZipf         = 10.0
	MaxReports      = 100.0
)

// Config says whom to ask, how hard, and for what. Keys and Targets are required; of the others the
// zero value is the default, but for WarmUp and Work's Zipf, Guards and Reports, where 0 is none. What
// stands below Progress is for tests.
type Config struct {
	// Flows take Keys in turn, and each of a key the Targets in turn.
	Keys    []apikey.Key
	Targets []netip.AddrPort

	Flows    int     // sockets: 16, at most 4096, and no more than InFlight in a closed loop
	InFlight int     // closed loop: requests in flight over all flows: 64, at most 2^20
	Rate     float64 // open loop: requests a second over all flows, at most 10^7; 0 makes a closed loop

	For     time.Duration // how long requests count: 10 s, at most a day
	WarmUp  time.Duration // how long they do not, before that: at most an hour
	Timeout time.Duration // what takes longer is lost: 1 s, 1 ms to a minute
	Work    Work
	Seed    uint64 // of what is drawn at random, identities apart

	// Steer has flows change their port when a server asks for it, as clients do.
	Steer bool
	// Progress is called about once a second, by one goroutine at a time. Nil means that nobody wants to know.
	Progress func(Progress)

	Stack   udp.Stack        // opens the sockets; nil is the machine's
	Now     func() time.Time // nil is time.Now
	Entropy io.Reader        // a cryptographic source; nil is the machine's
}

// Work is what each request asks for.
type Work struct {
	Layout    wire.Layout // 2
	Buckets   int         // how many different ones there are: 1, at most 10^7
	Zipf      float64     // the exponent by which the first are asked for more than the last; 0 is all alike, at most 10
	Resources int         // a request: 1
	Guards    int         // a request, each with a tracker of its own
	Reports   float64     // latency reports a request, for the guards' trackers: at most 100
	Tokens    uint16      // a resource: 1
	Limit     uint32      // tokens in a window of each bucket: 10^9, so that every request is granted
	Window    uint32      // ms: 1000
}

// Progress is how far a run is.
type Progress struct {
	Passed, All time.Duration
	Answered    uint64  // since the begin
	PerSecond   float64 // answers, since the last Progress
}

// Check says what is wrong with a configuration, as [Run] would.
func Check(cfg Config) error {
	_, err := cfg.fill()
	return err
}

// fill checks the configuration and fills in defaults.
func (cfg Config) fill() (Config, error) {
	cfg.Work.fill()
	cfg.For = cmp.Or(cfg.For, DefaultFor)
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.InFlight = cmp.Or(cfg.InFlight, DefaultInFlight)
	if cfg.Flows == 0 {
		cfg.Flows = DefaultFlows
		if cfg.Rate == 0 {
			cfg.Flows = max(1, min(cfg.Flows, cfg.InFlight))
		}
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
	switch {
	case len(cfg.Keys) == 0:
		return cfg, errors.New("load: there is no key; read one with apikey.Parse")
	case len(cfg.Targets) == 0:
		return cfg, errors.New("load: there is no server to ask")
	case cfg.Flows < 1 || cfg.Flows > MaxFlows:
		return cfg, fmt.Errorf("load: %d flows are not from 1 to %d", cfg.Flows, MaxFlows)
	case cfg.Rate < 0 || cfg.Rate > MaxRate || math.IsNaN(cfg.Rate):
		return cfg, fmt.Errorf("load: a rate of %v a second is not above 0 and at most %d", cfg.Rate, MaxRate)
	case cfg.Rate == 0 && (cfg.InFlight < cfg.Flows || cfg.InFlight > MaxInFlight):
		return cfg, fmt.Errorf("load: %d requests in flight are not from %d, one for each flow, to %d", cfg.InFlight, cfg.Flows, MaxInFlight)
	case cfg.For <= 0 || cfg.For > MaxFor:
		return cfg, fmt.Errorf("load: %v is not above 0 and at most %v; it is how long to measure", cfg.For, MaxFor)
	case cfg.WarmUp < 0 || cfg.WarmUp > MaxWarmUp:
		return cfg, fmt.Errorf("load: a warm-up of %v is not from 0 to %v", cfg.WarmUp, MaxWarmUp)
	case cfg.Timeout < time.Millisecond || cfg.Timeout > MaxTimeout:
		return cfg, fmt.Errorf("load: a timeout of %v is not from 1 ms to %v", cfg.Timeout, MaxTimeout)
	}
	return cfg, cfg.Work.check(cfg.Keys)
}

func (w *Work) fill() {
	const limit, window = 1_000_000_000, 1000
	w.Layout = cmp.Or(w.Layout, wire.Layout2)
	w.Buckets = cmp.Or(w.Buckets, 1)
	w.Resources = cmp.Or(w.Resources, 1)
	w.Tokens = cmp.Or(w.Tokens, 1)
	w.Limit = cmp.Or(w.Limit, limit)
	w.Window = cmp.Or(w.Window, window)
}

// check says what is wrong with the work, for the keys that are to ask for it.
func (w *Work) check(keys []apikey.Key) error {
	switch {
	case w.Buckets < 1 || w.Buckets > MaxBuckets:
		return fmt.Errorf("load: %d buckets are not from 1 to %d", w.Buckets, MaxBuckets)
	case w.Zipf < 0 || w.Zipf > MaxZipf || math.IsNaN(w.Zipf):
		return fmt.Errorf("load: a Zipf exponent of %v is not from 0 to %v", w.Zipf, MaxZipf)
	case w.Reports < 0 || w.Reports > MaxReports || math.IsNaN(w.Reports):
		return fmt.Errorf("load: %v reports a request are not from 0 to %v", w.Reports, MaxReports)
	case w.Resources < 1 || w.Guards < 0:
		return fmt.Errorf("load: a request has at least one resource and no fewer guards than none, not %d and %d", w.Resources, w.Guards)
	case w.Reports > 0 && w.Guards == 0:
		return errors.New("load: reports are for the trackers of guards, and there are none")
	}
	for _, k := range keys {
		if k.IsZero() {
			return errors.New("load: a key is missing; read one with apikey.Parse")
		}
		if size := wire.RequestSize(k.Auth(), w.Layout, w.Guards, w.Resources, 0); size > wire.MaxDatagram {
			return fmt.Errorf("load: a request of %d resources and %d guards takes %d bytes in %v mode, and a datagram has %d",
				w.Resources, w.Guards, size, k.Auth(), wire.MaxDatagram)
		}
		if most := wire.MaxObservations(k.Auth(), w.Layout); w.Reports > 0 && w.Guards > most {
			return fmt.Errorf("load: a report for %d guards does not fit; %d do", w.Guards, most)
		}
	}
	return nil
}

// dedupTTL is how long a server is to remember a request, and how long one may lie in its queue: in
// ms, and within the key's quota.
func (cfg *Config) dedupTTL(k apikey.Key) uint32 {
	return max(1, min(uint32(cfg.Timeout.Milliseconds()), k.Quotas().DedupTTL))
}
