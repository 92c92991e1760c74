package core

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

func TestNewRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		field  string
	}{
		"no key":                       {func(c *Config) { c.Key = apikey.Key{} }, "Key"},
		"no entropy":                   {func(c *Config) { c.Entropy = nil }, "Entropy"},
		"layout 3":                     {func(c *Config) { c.Layout = 3 }, "Layout"},
		"negative bound":               {func(c *Config) { c.MaxInFlight = -1 }, "MaxInFlight"},
		"bound too high":               {func(c *Config) { c.MaxInFlight = MaxInFlightLimit + 1 }, "MaxInFlight"},
		"horizon over the quota":       {func(c *Config) { c.Policy = policy.Default(); c.Policy.Unit = 101 * time.Millisecond }, "Policy"},
		"horizon a hair over":          {func(c *Config) { c.Policy = policy.Default(); c.Policy.Unit = 100*time.Millisecond + 1 }, "Policy"},
		"negative interval":            {func(c *Config) { c.Refresh.Interval = -1 }, "Refresh.Interval"},
		"interval under a second":      {func(c *Config) { c.Refresh.Interval = time.Second - 1 }, "Refresh.Interval"},
		"minimum under a second":       {func(c *Config) { c.Refresh.Min = time.Millisecond }, "Refresh.Min"},
		"minimum over the interval":    {func(c *Config) { c.Refresh.Min = 301 * time.Second }, "Refresh.Min"},
		"forced under a second":        {func(c *Config) { c.Refresh.Forced = time.Millisecond }, "Refresh.Forced"},
		"backoff under a second":       {func(c *Config) { c.Refresh.Backoff = time.Millisecond }, "Refresh.Backoff"},
		"backoff over its maximum":     {func(c *Config) { c.Refresh.Backoff = 61 * time.Second }, "Refresh.Backoff"},
		"backoff maximum of two years": {func(c *Config) { c.Refresh.BackoffMax = 2 * maxRefresh }, "Refresh.BackoffMax"},
		"negative timeout":             {func(c *Config) { c.Refresh.Timeout = -1 }, "Refresh.Timeout"},
		"negative grace":               {func(c *Config) { c.Refresh.Grace = -1 }, "Refresh.Grace"},
		"grace of two years":           {func(c *Config) { c.Refresh.Grace = 2 * maxRefresh }, "Refresh.Grace"},
		"65 servers":                   {func(c *Config) { c.Limits.Servers = 65 }, "Limits.Servers"},
		"65 addresses":                 {func(c *Config) { c.Limits.Addresses = 65 }, "Limits.Addresses"},
		"257 endpoints":                {func(c *Config) { c.Limits.Endpoints = 257 }, "Limits.Endpoints"},
		"negative limit":               {func(c *Config) { c.Limits.Servers = -1 }, "Limits.Servers"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Key: testKey(t, apikey.AuthCookie), Entropy: seeded(1)}
			tt.change(&cfg)
			_, err := New(cfg)
			var field *FieldError
			if !errors.As(err, &field) || field.Field != tt.field {
				t.Fatalf("error %v, want one about %s", err, tt.field)
			}
		})
	}
}

// TestDefaults holds every number that a configuration leaves open.
func TestDefaults(t *testing.T) {
	got := newTestCore(t, 0, nil).cfg
	if want := (RefreshConfig{
		Interval: 300 * time.Second, Min: time.Second, Forced: time.Second,
		Backoff: time.Second, BackoffMax: 60 * time.Second, Timeout: 10 * time.Second, Grace: 500 * time.Millisecond,
	}); got.Refresh != want {
		t.Errorf("Refresh is %+v, want %+v", got.Refresh, want)
	}
	if want := (Limits{Servers: 16, Addresses: 4, Endpoints: 64}); got.Limits != want {
		t.Errorf("Limits are %+v, want %+v", got.Limits, want)
	}
	if got.MaxInFlight != 65536 || got.Layout != wire.Layout2 || got.Policy != policy.Default() || got.Domain != "" || got.FailFast.Timeouts != 0 {
		t.Errorf("%+v", got)
	}
}

// TestNewTakesTheBounds has every number at its least and at its most.
func TestNewTakesTheBounds(t *testing.T) {
	for _, d := range []time.Duration{time.Second, maxRefresh} {
		newTestCore(t, 0, func(c *Config) {
			c.Refresh = RefreshConfig{Interval: d, Min: d, Forced: d, Backoff: d, BackoffMax: d, Timeout: d, Grace: d}
		})
	}
	newTestCore(t, 0, func(c *Config) { c.Refresh.Timeout, c.Refresh.Grace = 1, 1 })
	newTestCore(t, 0, func(c *Config) { c.MaxInFlight, c.Limits = 1, Limits{1, 1, 1} })
	newTestCore(t, 0, func(c *Config) { c.MaxInFlight, c.Limits = MaxInFlightLimit, Limits{64, 64, 256} })
}

func TestNewRefusesPolicy(t *testing.T) {
	cfg := Config{Key: testKey(t, apikey.AuthCookie), Entropy: seeded(1), Policy: policy.Default()}
	cfg.Policy.Replays = -1
	_, err := New(cfg)
	var field *policy.FieldError
	if !errors.As(err, &field) || field.Field != "replays" {
		t.Fatalf("error %v, want one about replays", err)
	}
}

func TestNewTakesTheQuotaExactly(t *testing.T) {
	cfg := Config{Key: testKey(t, apikey.AuthCookie), Entropy: seeded(1), Policy: policy.Default()}
	cfg.Policy.Unit = 100 * time.Millisecond // H = 300 ms, the quota
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if h := c.Timeline().Horizon(); h != 300*time.Millisecond {
		t.Errorf("horizon %v", h)
	}
}

func TestEntropyFails(t *testing.T) {
	key := testKey(t, apikey.AuthAES)
	broken := errors.New("broken source")
	for read := range 24 { // what New needs
		_, err := New(Config{Key: key, Entropy: io.MultiReader(io.LimitReader(seeded(1), int64(read)), iotest.ErrReader(broken))})
		if err == nil || !strings.HasPrefix(err.Error(), "core: Entropy: ") {
			t.Fatalf("New with %d bytes: error %v", read, err)
		}
	}
	c, err := New(Config{Key: key, Entropy: io.MultiReader(io.LimitReader(seeded(1), 24), iotest.ErrReader(broken))})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetMembership(at(0), testServers(1)); err != nil {
		t.Fatal(err)
	}
	drainEvents(c)
	if _, err := c.Submit(at(0), askOne()); !errors.Is(err, broken) {
		t.Errorf("Submit: error %v", err)
	}
	if err := c.Report(at(0), observations(100)); !errors.Is(err, broken) {
		t.Errorf("Report: error %v", err)
	}
	if _, err := c.Submit(at(0), &Request{}); err != nil {
		t.Errorf("the request for nothing needs no entropy: %v", err)
	}
	if sends := drainSends(c, at(0)); len(sends) != 0 {
		t.Errorf("sends: %+v", sends)
	}
	if s := c.Stats(); s.InFlight != 0 || s.Kept != 0 || s.Submitted != 1 || s.Observations != 0 {
		t.Errorf("stats: %+v", s)
	}
}

// TestReportIsWholeOrNot has the entropy end in the middle of a report of three
// datagrams: none is sent, and nothing is counted.
func TestReportIsWholeOrNot(t *testing.T) {
	broken := errors.New("broken source")
	c := newTestCore(t, 1, func(cfg *Config) {
		cfg.Entropy = io.MultiReader(io.LimitReader(seeded(1), 24+2*16), iotest.ErrReader(broken))
		cfg.Layout = wire.Layout1
	})
	obs := observations(70)
	obs[0].BufferSize = apikey.DefaultQuotas().LatencyBufferSize + 1
	if err := c.Report(at(0), obs); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if sends := drainSends(c, at(0)); len(sends) != 0 {
		t.Errorf("%d datagrams of a report that failed", len(sends))
	}
	if s := c.Stats(); s.Observations != 0 || s.ObservationsLeftOut != 0 {
		t.Errorf("%d observations are counted, %d left out", s.Observations, s.ObservationsLeftOut)
	}
	if n := len(c.reporter.free); n != 2 {
		t.Errorf("%d of 2 datagrams are free", n)
	}
}

// constant gives the same byte for ever.
type constant byte

func (c constant) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}

func TestIdentityTwice(t *testing.T) {
	c := newTestCore(t, 1, func(cfg *Config) { cfg.Entropy = constant(7) })
	if _, err := c.Submit(at(0), askOne()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Submit(at(0), askOne())
	if err == nil || !strings.Contains(err.Error(), "not random") {
		t.Errorf("error %v", err)
	}
	if s := c.Stats(); s.InFlight != 1 {
		t.Errorf("%d in flight", s.InFlight)
	}
}

func TestSubmitRefuses(t *testing.T) {
	quotas := apikey.DefaultQuotas()
	quotas.RateWindow = 1 << 16
	key, err := apikey.New(apikey.AuthNone, 7, quotas, seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	fullGuards := make([]wire.Guard, 32) // 31 fit
	window := bucket("x")
	window.Window = 1<<16 + 1
	buffer := guard("a", 1)
	buffer.BufferSize = quotas.LatencyBufferSize + 1
	atQuota := Request{Guards: []wire.Guard{buffer}, Resources: []wire.Resource{window}}
	atQuota.Guards[0].BufferSize--
	atQuota.Resources[0].Window--
	tests := map[string]struct {
		layout  wire.Layout
		request Request
		field   string // "" = accepted
	}{
		"window over the quota":            {2, Request{Resources: []wire.Resource{bucket("x"), window}}, "Resources[1].Window"},
		"buffer over the quota, layout 1":  {1, Request{Guards: []wire.Guard{guard("a", 1), buffer}}, "Guards[1].BufferSize"},
		"window and buffer at the quota":   {1, atQuota, ""},
		"no buffer in layout 2":            {2, Request{Guards: []wire.Guard{buffer}}, ""},
		"31 guards":                        {2, Request{Guards: fullGuards[:31]}, ""},
		"32 guards":                        {2, Request{Guards: fullGuards}, "Request"},
		"29 guards of layout 1":            {1, Request{Guards: fullGuards[:29]}, "Request"},
		"40 resources":                     {2, Request{Resources: make([]wire.Resource, 40)}, ""},
		"41 resources":                     {2, Request{Resources: make([]wire.Resource, 41)}, "Request"},
		"a label that fills the datagram":  {2, Request{Resources: []wire.Resource{bucket("x")}, Label: strings.Repeat("x", 1110)}, ""},
		"a label that overflows it":        {2, Request{Resources: []wire.Resource{bucket("x")}, Label: strings.Repeat("x", 1111)}, "Request"},
		"a label longer than a datagram":   {2, Request{Resources: []wire.Resource{bucket("x")}, Label: strings.Repeat("x", 100_000)}, "Request"},
		"a window of 0, which grants none": {2, Request{Resources: []wire.Resource{{}}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestCore(t, 1, func(cfg *Config) { cfg.Key, cfg.Layout = key, tt.layout })
			_, err := c.Submit(at(0), &tt.request)
			var field *FieldError
			switch {
			case tt.field == "" && err != nil:
				t.Fatal(err)
			case tt.field != "" && (!errors.As(err, &field) || field.Field != tt.field):
				t.Fatalf("error %v, want one about %s", err, tt.field)
			}
			for _, s := range drainSends(c, at(0)) {
				if len(s.Payload) > wire.MaxDatagram {
					t.Errorf("a datagram of %d bytes", len(s.Payload))
				}
			}
		})
	}
}

// TestReportOverQuota leaves out, in layout 1, what the key does not allow.
func TestReportOverQuota(t *testing.T) {
	obs := observations(4)
	obs[1].BufferSize = apikey.DefaultQuotas().LatencyBufferSize + 1
	obs[2].BufferSize = apikey.DefaultQuotas().LatencyBufferSize
	for layout, want := range map[wire.Layout]int{1: 3, 2: 4} {
		c := newTestCore(t, 1, func(cfg *Config) { cfg.Layout = layout })
		if err := c.Report(at(0), obs); err != nil {
			t.Fatal(err)
		}
		sends := drainSends(c, at(0))
		if len(sends) != 1 {
			t.Fatalf("%v: %d datagrams", layout, len(sends))
		}
		got := newResponder(t, c.cfg.Key).reported(t, sends[0].Payload)
		if got != want {
			t.Errorf("%v: %d observations, want %d", layout, got, want)
		}
		if s := c.Stats(); s.Observations != uint64(want) || s.ObservationsLeftOut != uint64(4-want) {
			t.Errorf("%v: stats %+v", layout, s)
		}
		if err := c.Report(at(0), obs[1:2]); err != nil {
			t.Errorf("%v: %v", layout, err)
		}
		if n := len(drainSends(c, at(0))); (n == 0) != (layout == 1) {
			t.Errorf("%v: %d datagrams for what is left out", layout, n)
		}
	}
}

// TestReportsHaveIdentitiesOfTheirOwn reads the datagrams of one long report.
func TestReportsHaveIdentitiesOfTheirOwn(t *testing.T) {
	c := newTestCore(t, 2, nil)
	if err := c.Report(at(0), observations(100)); err != nil {
		t.Fatal(err)
	}
	r := newResponder(t, c.cfg.Key)
	total := 0
	seen := map[wire.UniqueID]string{} // and what it names
	for _, s := range drainSends(c, at(0)) {
		if s.Server == serverID(0) {
			total += r.reported(t, s.Payload)
		}
		var e wire.Envelope
		if err := wire.ParseEnvelope(s.Payload, &e); err != nil {
			t.Fatal(err)
		}
		if was, ok := seen[e.Header.UniqueID]; ok && was != string(s.Payload) {
			t.Error("two datagrams under one identity")
		}
		seen[e.Header.UniqueID] = string(s.Payload)
	}
	if want := (100 + 33) / 34; len(seen) != want || total != 100 {
		t.Errorf("%d observations in %d datagrams, want 100 in %d", total, len(seen), want)
	}
}

// reported returns how many observations a report has.
func (r *responder) reported(t testing.TB, datagram []byte) int {
	t.Helper()
	_, pdu := r.open(t, datagram)
	var v wire.ReportView
	if err := wire.ParseReport(pdu, &v); err != nil {
		t.Fatal(err)
	}
	return v.Len()
}
