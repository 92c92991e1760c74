package load

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
)

// What is wrong is told with its field, before anything is opened.
func TestConfig(t *testing.T) {
	small := apikey.DefaultQuotas()
	small.RateWindow, small.RateBuckets, small.LatencyServices = 512, 16, 2
	key := func(q apikey.Quotas, legacy bool) apikey.Key {
		issue := apikey.New
		if legacy {
			issue = apikey.NewLegacy
		}
		k, err := issue(apikey.AuthAES, 1, q, strings.NewReader(strings.Repeat("x", apikey.SecretSize)))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	empty := apikey.DefaultQuotas()
	empty.RateWindow = math.MaxUint32
	noTTL, noSamples := empty, empty
	noTTL.DedupTTL, noSamples.LatencyBufferSize = 0, 0
	good := Config{Keys: []apikey.Key{newKey(t, apikey.AuthAES)}, Targets: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")}}
	if err := Check(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field, problem string
		change         func(*Config)
	}{
		{"Keys", "none", func(c *Config) { c.Keys = nil }},
		{"Keys", "missing", func(c *Config) { c.Keys = make([]apikey.Key, 1) }},
		{"Keys", "no request be remembered", func(c *Config) { c.Keys[0] = key(noTTL, true) }},
		{"Targets", "no server", func(c *Config) { c.Targets = nil }},
		{"Servers", "one for each", func(c *Config) { c.Servers = append(c.Servers, 1, 2) }},
		{"Flows", "4097", func(c *Config) { c.Rate, c.Flows = 1, MaxFlows+1 }},
		{"Flows", "-1", func(c *Config) { c.Flows = -1 }},
		{"Flows", "give at least 2", func(c *Config) { c.Keys, c.Flows = append(c.Keys, c.Keys[0]), 1 }},
		{"Flows", "give at least 2", func(c *Config) { c.Targets, c.InFlight = append(c.Targets, c.Targets[0]), 1 }},
		{"InFlight", "too few for 4 sockets", func(c *Config) { c.Flows, c.InFlight = 4, 3 }},
		{"InFlight", "-1", func(c *Config) { c.InFlight = -1 }},
		{"InFlight", "not from 1 to", func(c *Config) { c.InFlight = MaxInFlight + 1 }},
		{"Rate", "-1", func(c *Config) { c.Rate = -1 }},
		{"Rate", "NaN", func(c *Config) { c.Rate = math.NaN() }},
		{"Rate", "at most", func(c *Config) { c.Rate = MaxRate * 1.01 }},
		{"Timeout", "so long", func(c *Config) { c.Rate, c.Timeout = 1e5, time.Minute }},
		{"Timeout", "not from 1 ms", func(c *Config) { c.Timeout = time.Millisecond - 1 }},
		{"Timeout", "not from 1 ms", func(c *Config) { c.Timeout = MaxTimeout + 1 }},
		{"For", "-1ns", func(c *Config) { c.For = -1 }},
		{"For", "at most", func(c *Config) { c.For = MaxFor + 1 }},
		{"WarmUp", "-1ns", func(c *Config) { c.WarmUp = -1 }},
		{"WarmUp", "not from 0", func(c *Config) { c.WarmUp = MaxWarmUp + 1 }},
		{"Layout", "no layout 3", func(c *Config) { c.Work.Layout = 3 }},
		{"Buckets", "-1", func(c *Config) { c.Work.Buckets = -1 }},
		{"Buckets", "from 1 to 5000000", func(c *Config) { c.Keys, c.Work.Buckets = append(c.Keys, c.Keys[0]), MaxBuckets/2+1 }},
		{"Buckets", "more than the 16", func(c *Config) { c.Keys[0], c.Work.Window, c.Work.Buckets = key(small, false), 512, 17 }},
		{"Window", "more than the 512 ms", func(c *Config) { c.Keys[0] = key(small, false) }},
		{"Guards", "more than the 2", func(c *Config) { c.Keys[0], c.Work.Window, c.Work.Guards = key(small, false), 512, 3 }},
		{"Guards", "no samples", func(c *Config) { c.Keys[0], c.Work.Guards = key(noSamples, true), 1 }},
		{"Guards", "do not fit", func(c *Config) { c.Work.Guards = 40 }},
		{"Guards", "do not fit", func(c *Config) { c.Work.Guards = math.MaxInt }},
		{"Guards", "-1", func(c *Config) { c.Work.Guards = -1 }},
		{"Resources", "with 20 guards", func(c *Config) { c.Work.Guards, c.Work.Resources = 20, 30 }},
		{"Resources", "-1", func(c *Config) { c.Work.Resources = -1 }},
		{"Reports", "there are none", func(c *Config) { c.Work.Reports = 1 }},
		{"Reports", "NaN", func(c *Config) { c.Work.Reports, c.Work.Guards = math.NaN(), 1 }},
		{"Reports", "not from 0", func(c *Config) { c.Work.Reports, c.Work.Guards = MaxReports+1, 1 }},
		{"Zipf", "-1", func(c *Config) { c.Work.Zipf = -1 }},
		{"Zipf", "NaN", func(c *Config) { c.Work.Zipf = math.NaN() }},
	} {
		cfg := good
		cfg.Keys = append([]apikey.Key(nil), good.Keys...)
		c.change(&cfg)
		_, err := Run(t.Context(), cfg)
		var wrong *FieldError
		if !errors.As(err, &wrong) || wrong.Field != c.field || !strings.Contains(wrong.Problem, c.problem) {
			t.Errorf("want %s, %q, and it is: %v", c.field, c.problem, err)
		}
	}
}

// Defaults are what they are said to be, and flows are no more than there is to do.
func TestDefaults(t *testing.T) {
	cfg := Config{Keys: []apikey.Key{newKey(t, apikey.AuthAES)}, Targets: make([]netip.AddrPort, 20)}
	got, err := cfg.fill()
	if err != nil || got.Flows != 20 || got.InFlight != 64 || got.For != 10*time.Second || got.Timeout != time.Second ||
		got.Work != (Work{Layout: wire.Layout2, Buckets: 1, Resources: 1, Tokens: 1, Limit: 1_000_000_000, Window: 1000}) {
		t.Errorf("%+v, %v", got, err)
	}
	cfg.Targets, cfg.InFlight = cfg.Targets[:1], 3
	if got, err := cfg.fill(); err != nil || got.Flows != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	cfg.InFlight, cfg.Rate = 0, 10
	if got, err := cfg.fill(); err != nil || got.Flows != 16 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The most flows take little memory and few looks at the time; slots of an open loop are enough for a
// timeout, and half as many again.
func TestSizes(t *testing.T) {
	cfg := Config{Flows: MaxFlows, Rate: 40_960, Timeout: 2 * time.Second}
	if n := cfg.batch() * cfg.Flows * wire.BufferSize; n > 25<<20 {
		t.Errorf("buffers of %d bytes", n)
	}
	if looks := float64(cfg.Flows) / cfg.tick().Seconds(); looks > 10_000.1 {
		t.Errorf("%v looks a second", looks)
	}
	if n := cfg.slots(1); n != 64+30 {
		t.Errorf("%d slots", n)
	}
	cfg = Config{Flows: 16, Timeout: 5 * time.Millisecond, InFlight: 16}
	if cfg.batch() != 32 || cfg.tick() != 5*time.Millisecond {
		t.Errorf("%d at once, looks each %v", cfg.batch(), cfg.tick())
	}
}

// There are bursts where a flow can have several requests in flight, unless there are so many flows that
// it would take much memory, or nobody wants them.
func TestWhoHasBursts(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want bool
	}{
		{Config{Flows: 16, InFlight: 17}, true},
		{Config{Flows: 16, InFlight: 16}, false},
		{Config{Flows: 16, Rate: 1}, true},
		{Config{Flows: 256, Rate: 1}, true},
		{Config{Flows: 257, Rate: 1}, false},
		{Config{Flows: 16, Rate: 1, NoBursts: true}, false},
	} {
		o := c.cfg.socketOptions()
		if o.Bursts != c.want || o.Bursts && c.cfg.batch() <= 4 {
			t.Errorf("%d flows, %d in flight, rate %v, NoBursts %v: %+v, %d at once", c.cfg.Flows, c.cfg.InFlight, c.cfg.Rate, c.cfg.NoBursts, o, c.cfg.batch())
		}
	}
}
