package weir

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
)

func TestConfigErrors(t *testing.T) {
	key := testKey(t, apikey.AuthAES)
	slow := policy.Default()
	slow.Unit = time.Second
	broken := policy.Default()
	broken.Replays = -1
	tests := map[string]struct {
		cfg    Config
		field  string
		reason string
	}{
		"no key":           {Config{Zone: "rl.test"}, "Key", "apikey.Parse"},
		"no servers":       {Config{Key: key}, "Zone, Domain, Servers, Hosted", "exactly one"},
		"zone and domain":  {Config{Key: key, Zone: "a.test", Domain: "b.test"}, "Zone, Domain, Servers, Hosted", "exactly one"},
		"zone and hosted":  {Config{Key: key, Zone: "a.test", Hosted: true}, "Zone, Domain, Servers, Hosted", "exactly one"},
		"zone of nonsense": {Config{Key: key, Zone: "rl test"}, "Zone", "character"},
		"domain is an IP":  {Config{Key: key, Domain: "192.0.2.1"}, "Domain", "IP address"},
		"negative buffer":  {Config{Key: key, Zone: "rl.test", SocketBuffer: -1}, "SocketBuffer", "negative"},
		"layout 3":         {Config{Key: key, Zone: "rl.test", Layout: 3}, "Layout", "1 nor 2"},
		"in flight":        {Config{Key: key, Zone: "rl.test", MaxInFlight: -1}, "MaxInFlight", "-1"},
		"refresh":          {Config{Key: key, Zone: "rl.test", Refresh: core.RefreshConfig{Min: time.Millisecond}}, "Refresh.Min", "1s"},
		"horizon":          {Config{Key: key, Zone: "rl.test", Policy: slow}, "Policy", "300 ms"},
		"replays":          {Config{Key: key, Zone: "rl.test", Policy: broken}, "Policy.replays", "-1"},
		"port 0": {
			Config{Key: key, Servers: []discovery.Server{{ID: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}}},
			"Servers[1].Endpoints", "127.0.0.1:0",
		},
	}
	for name, tt := range tests {
		c, err := New(tt.cfg)
		if err == nil {
			c.Close()
		}
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Field != tt.field || !strings.Contains(bad.Reason, tt.reason) {
			t.Errorf("%s: %v; want field %q and %q", name, err, tt.field, tt.reason)
		} else if want := "weir: " + tt.field + ": "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %q does not begin with %q", name, err, want)
		}
		if err != nil && strings.Contains(err.Error(), key.Encode()) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
}

func TestHostedIsAnOption(t *testing.T) {
	key := testKey(t, apikey.AuthAES)
	cfg := Config{Key: key, Hosted: true}
	if domain, err := cfg.domain(); err != nil || domain != "c-7."+discovery.HostedZone {
		t.Errorf("%q, %v", domain, err)
	}
}

func TestRequestErrors(t *testing.T) {
	key := testKey(t, apikey.AuthAES)
	member, err := discovery.ParseServer("1@127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Key: key, Servers: []discovery.Server{member}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good := checkout.Take(1)
	tracker := func(o TrackerOptions) LatencyTracker { return Tracker("x", o) }
	many := make([]Resource, 100)
	for i := range many {
		many[i] = good
	}
	tests := map[string]struct {
		request Request
		field   string
	}{
		"zero bucket":       {Request{Resources: []Resource{good, {Tokens: 1}}}, "Resources[1].Bucket"},
		"window":            {Request{Resources: []Resource{Bucket("x", 1, 1500*time.Microsecond).Take(1)}}, "Resources[0].Bucket.Window"},
		"window of minutes": {Request{Resources: []Resource{Bucket("x", 1, math.MaxUint32*time.Millisecond+time.Millisecond).Take(1)}}, "Resources[0].Bucket.Window"},
		"negative window":   {Request{Resources: []Resource{Bucket("x", 1, -time.Second).Take(1)}}, "Resources[0].Bucket.Window"},
		"negative limit":    {Request{Resources: []Resource{good, Bucket("x", -1, time.Second).Take(1)}}, "Resources[1].Bucket.Limit"},
		"tokens":            {Request{Resources: []Resource{checkout.Take(65536)}}, "Resources[0].Tokens"},
		"negative tokens":   {Request{Resources: []Resource{checkout.Take(-1)}}, "Resources[0].Tokens"},
		"zero tracker":      {Request{Guards: []Guard{{}}}, "Guards[0].Tracker"},
		"ttl":               {Request{Guards: []Guard{tracker(TrackerOptions{TTL: time.Microsecond}).Below(time.Second)}}, "Guards[0].Tracker.TTL"},
		"max samples":       {Request{Guards: []Guard{tracker(TrackerOptions{MaxSamples: -1}).Below(time.Second)}}, "Guards[0].Tracker.MaxSamples"},
		"min samples":       {Request{Guards: []Guard{tracker(TrackerOptions{MinSamples: -1}).Below(time.Second)}}, "Guards[0].Tracker.MinSamples"},
		"buffer":            {Request{Guards: []Guard{tracker(TrackerOptions{BufferSize: -1}).Below(time.Second)}}, "Guards[0].Tracker.BufferSize"},
		"threshold":         {Request{Guards: []Guard{inventory.Below(time.Second), inventory.Below(time.Nanosecond)}}, "Guards[1].Threshold"},
		"too much":          {Request{Resources: many}, "Request"},
	}
	for name, tt := range tests {
		_, err := c.Acquire(context.Background(), tt.request)
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Field != tt.field {
			t.Errorf("%s: %v; want field %q", name, err, tt.field)
		}
	}
	for name, o := range map[string]Observation{
		"Observations[1].Tracker":     {},
		"Observations[1].Tracker.TTL": tracker(TrackerOptions{TTL: -time.Second}).Took(0),
	} {
		var bad *ConfigError
		if err := c.Report(inventory.Took(0), o); !errors.As(err, &bad) || bad.Field != name {
			t.Errorf("%v; want field %q", err, name)
		}
	}
	if err := c.Report(); err == nil {
		t.Error("a report of nothing was sent")
	}
	if n := c.Stats().Submitted; n != 0 {
		t.Errorf("%d requests were submitted", n)
	}
}

func TestWindowQuota(t *testing.T) {
	quotas := apikey.DefaultQuotas()
	quotas.RateWindow = 1024
	key, err := apikey.New(apikey.AuthNone, 7, quotas, nil)
	if err != nil {
		t.Fatal(err)
	}
	member, err := discovery.ParseServer("1@127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Key: key, Servers: []discovery.Server{member}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var bad *ConfigError
	_, err = c.Acquire(context.Background(), Request{Resources: []Resource{Bucket("x", 1, time.Minute).Take(1)}})
	if !errors.As(err, &bad) || bad.Field != "Resources[0].Window" {
		t.Error(err)
	}
}

// Known answers of docs/protocol.md, "IDs".
func TestBucketIDs(t *testing.T) {
	most := int64(math.MaxUint32)
	for want, b := range map[string]RateBucket{
		"f5cf3ad8b8406854b596ba3614f16eff": Bucket("checkout", 100, time.Second),
		"732b120606917c683e37433fa00a60dc": Bucket("café", 25, time.Minute),
		"f57a48f69aa8c7a16fc73499ae8d07fa": Bucket("binary\x00bucket", int(most), math.MaxUint32*time.Millisecond),
	} {
		if got := b.ID().String(); got != want {
			t.Errorf("%q: %s, want %s", b.Name(), got, want)
		}
	}
	if b := Bucket("x", 5, time.Minute); b.Limit() != 5 || b.Window() != time.Minute {
		t.Errorf("%+v", b)
	}
	if tr := Tracker("x", TrackerOptions{TTL: time.Second}); tr.Name() != "x" || tr.Options().TTL != time.Second || tr.ID().IsZero() {
		t.Errorf("%+v", tr)
	}
}
