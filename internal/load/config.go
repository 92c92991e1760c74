package load

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
)

// Bounds of a [Config], and its defaults.
const (
	DefaultFlows    = 16
	MaxFlows        = 4096
	DefaultInFlight = 64
	MaxInFlight     = 1 << 20
	MaxRate         = 10_000_000
	MaxOpen         = 1 << 22 // requests without an answer that an open loop keeps track of: Rate times Timeout
	DefaultFor      = 10 * time.Second
	MaxFor          = 24 * time.Hour
	MaxWarmUp       = time.Hour
	DefaultTimeout  = time.Second
	MaxTimeout      = time.Minute
	MaxBuckets      = 10_000_000 // of all keys together
	MaxZipf         = 10.0
	MaxReports      = 100.0
)

// Config says whom to ask, how hard, and for what. Keys and Targets are required; of the others the
// zero value is the default, but for WarmUp and Work's Zipf, Guards and Reports, where 0 is none. What
// stands below Progress is for tests.
type Config struct {
	// Flows take Keys in turn, and each of a key the Targets in turn. Each of them has at least one flow.
	Keys    []apikey.Key
	Targets []netip.AddrPort
	// Servers are the IDs of the servers at Targets, one for each; an answer under another is wrong. Nil
	// takes answers under any.
	Servers []ident.ServerID

	Flows    int     // sockets: 16, at most 4096, and no more than InFlight in a closed loop
	InFlight int     // closed loop: requests in flight over all flows: 64, at most 2^20
	Rate     float64 // open loop: requests a second over all flows, at most 10^7; 0 makes a closed loop

	For     time.Duration // how long requests count: 10 s, at most a day
	WarmUp  time.Duration // how long they do not, before that: at most an hour
	Timeout time.Duration // what takes longer is lost: 1 s, 1 ms to a minute
	Work    Work
	Seed    uint64 // of what is drawn at random, identities apart

	// NoBursts moves datagrams one by one. Otherwise those of a flow that has several in flight come and
	// go many in one buffer of the system's, where it can do that and there are at most 256 flows.
	NoBursts bool
	// Steer has flows change their port when a server asks for it, as clients do.
	Steer bool
	// FromSend counts latencies from when a request was sent, not from when it was due, and to when the
	// system took in its answer, not to when it was read: what the server has a part in, and no more.
	FromSend bool
	// Replays, in an open loop, has requests without an answer sent again as a client with this policy does
	// (docs/policy.md), and Timeout is the policy's horizon. Nil sends each once.
	Replays *policy.Timeline
	// Progress is called about once a second, by one goroutine at a time. Nil means that nobody wants to know.
	Progress func(Progress)

	Stack   udp.Stack        // opens the sockets; nil is the machine's
	Now     func() time.Time // nil is time.Now
	Entropy io.Reader        // a cryptographic source; nil is the machine's
}

// Progress is how far a run is.
type Progress struct {
	Passed, All time.Duration
	Answered    uint64  // since the begin
	PerSecond   float64 // answers, since the last Progress
}

// A FieldError says what is wrong with a field of a [Config], or of its Work.
type FieldError struct{ Field, Problem string }

// Error names the field, and says what is wrong with it.
func (e *FieldError) Error() string { return "load: " + e.Field + ": " + e.Problem }

func wrongField(field, format string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// Check says what is wrong with a configuration, as [Run] would: a [FieldError].
func Check(cfg Config) error {
	_, err := cfg.fill()
	return err
}

// fill checks the configuration and fills in defaults.
func (cfg Config) fill() (Config, error) {
	cfg.Work.fill()
	cfg.For = cmp.Or(cfg.For, DefaultFor)
	timeout, horizon := "Timeout", "" // the field that it comes from, and what it is there
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	if cfg.Replays != nil {
		cfg.Timeout = cfg.Replays.Horizon()
		timeout, horizon = "Replays", "the policy's horizon of "
	}
	cfg.InFlight = cmp.Or(cfg.InFlight, DefaultInFlight)
	least := len(cfg.Keys) * len(cfg.Targets)
	if cfg.Flows == 0 {
		cfg.Flows = max(DefaultFlows, least)
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
		return cfg, wrongField("Keys", "there is none; read one with apikey.Parse")
	case len(cfg.Targets) == 0:
		return cfg, wrongField("Targets", "there is no server to ask")
	case cfg.Servers != nil && len(cfg.Servers) != len(cfg.Targets):
		return cfg, wrongField("Servers", "give one for each of %d targets, not %d", len(cfg.Targets), len(cfg.Servers))
	case cfg.Rate < 0 || cfg.Rate > MaxRate || math.IsNaN(cfg.Rate):
		return cfg, wrongField("Rate", "%v requests a second are not above 0 and at most %d", cfg.Rate, MaxRate)
	case cfg.Rate == 0 && (cfg.InFlight < 1 || cfg.InFlight > MaxInFlight):
		return cfg, wrongField("InFlight", "%d requests are not from 1 to %d", cfg.InFlight, MaxInFlight)
	case cfg.Replays != nil && cfg.Rate == 0:
		return cfg, wrongField("Replays", "a closed loop replays nothing; give a rate")
	case cfg.Flows < 1 || cfg.Flows > MaxFlows:
		return cfg, wrongField("Flows", "%d sockets are not from 1 to %d", cfg.Flows, MaxFlows)
	case cfg.Rate == 0 && cfg.InFlight < cfg.Flows:
		return cfg, wrongField("InFlight", "%d requests are too few for %d sockets, which have one each", cfg.InFlight, cfg.Flows)
	case cfg.Flows < least:
		return cfg, wrongField("Flows", "%d given; each key has a socket of its own at each address of a server, so give at least %d", cfg.Flows, least)
	case cfg.For <= 0 || cfg.For > MaxFor:
		return cfg, wrongField("For", "%v is not above 0 and at most %v", cfg.For, MaxFor)
	case cfg.WarmUp < 0 || cfg.WarmUp > MaxWarmUp:
		return cfg, wrongField("WarmUp", "%v is not from 0 to %v", cfg.WarmUp, MaxWarmUp)
	case cfg.Timeout < time.Millisecond || cfg.Timeout > MaxTimeout:
		return cfg, wrongField(timeout, "%s%v is not from 1 ms to %v", horizon, cfg.Timeout, MaxTimeout)
	case cfg.Rate*cfg.Timeout.Seconds() > MaxOpen:
		return cfg, wrongField(timeout, "at %.0f requests a second, %s%v is so long that more than %d may wait for answers", cfg.Rate, horizon, cfg.Timeout, MaxOpen)
	}
	err := cfg.Work.check(cfg.Keys)
	if err == nil {
		err = cfg.checkHorizon()
	}
	return cfg, err
}

// checkHorizon says which key no client may have this policy with.
func (cfg *Config) checkHorizon() error {
	if cfg.Replays == nil {
		return nil
	}
	for _, k := range cfg.Keys {
		if ms, most := cfg.Replays.HorizonMs(), k.Quotas().DedupTTL; ms > most {
			return wrongField("Replays", "the policy's horizon of %d ms is more than the %d ms that the quota of %v allows, so clients refuse it", ms, most, k)
		}
	}
	return nil
}

// slots returns how many requests the i-th flow may have in flight: in an open loop half as many
// again as are due before the oldest is lost.
func (cfg *Config) slots(i int) int {
	if cfg.Rate == 0 {
		n := cfg.InFlight / cfg.Flows
		if i < cfg.InFlight%cfg.Flows {
			n++
		}
		return n
	}
	const least, spare = 64, 1.5
	return least + int(spare*cfg.Rate/float64(cfg.Flows)*cfg.Timeout.Seconds())
}

// batch returns how many datagrams a flow moves at once at most: so many that many flows' fit into
// little memory.
func (cfg *Config) batch() int {
	const least, most, all = 4, 32, 4096
	if cfg.bursts() {
		return max(least, min(2*most, all/cfg.Flows))
	}
	return max(least, min(most, all/cfg.Flows))
}

// bursts reports whether datagrams of a flow may come and go many at once: what that takes of memory is
// little beside the rest, and the rest is not slower by it.
func (cfg *Config) bursts() bool {
	const most = 256
	return !cfg.NoBursts && cfg.Flows <= most && (cfg.Rate > 0 || cfg.InFlight > cfg.Flows)
}

// tick returns how often a flow looks for requests that are lost: as often as matters, and so seldom
// that many flows' looks take no processor of note.
func (cfg *Config) tick() time.Duration {
	const often, share = 20 * time.Millisecond, 100 * time.Microsecond
	return max(min(often, cfg.Timeout), share*time.Duration(cfg.Flows))
}

// dedupTTL is how long a server is to remember a request, and how long one may lie in its queue: in
// ms, and within the key's quota. Servers drop what asks for more than they are set to, which is the
// most that a key of today allows.
func (cfg *Config) dedupTTL(k apikey.Key) uint32 {
	const most = 2000
	ms := uint32(cfg.Timeout.Milliseconds())
	if cfg.Replays != nil {
		ms = cfg.Replays.HorizonMs() // rounded up
	}
	return max(1, min(ms, k.Quotas().DedupTTL, most))
}
