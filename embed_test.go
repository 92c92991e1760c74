package weir_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

var (
	orders  = weir.Bucket("orders", 100, time.Second)
	backend = weir.Tracker("backend", weir.TrackerOptions{TTL: 10 * time.Second, MaxSamples: 100, MinSamples: 5, BufferSize: 8})
)

func ordersIf() weir.Request {
	return weir.Request{
		Resources: []weir.Resource{orders.Take(3)},
		Guards:    []weir.Guard{backend.Below(250 * time.Millisecond)},
		Label:     "api\x00",
	}
}

func TestEncode(t *testing.T) {
	for layout, want := range map[wire.Layout]wire.Guard{
		0:            {Tracker: backend.ID()},
		wire.Layout2: {Tracker: backend.ID()},
		wire.Layout1: {Tracker: ident.TrackerLayout1("backend", 10000, 100, 8, 5), BufferSize: 8},
	} {
		want.TTL, want.MaxSamples, want.MinSamples, want.Threshold = 10000, 100, 5, 250
		got, err := ordersIf().Encode(layout)
		if err != nil || !reflect.DeepEqual(got, core.Request{
			Guards:    []wire.Guard{want},
			Resources: []wire.Resource{{Bucket: orders.ID(), Window: 1000, Rate: 100, Tokens: 3}},
			Label:     "api\x00",
		}) {
			t.Errorf("layout %d: %+v, %v", layout, got, err)
		}
		obs, err := weir.EncodeReport(layout, backend.Took(18*time.Millisecond))
		seen := wire.Observation{
			Tracker: want.Tracker, TTL: 10000, MaxSamples: 100, MinSamples: 5, BufferSize: want.BufferSize, Latency: 18,
		}
		if err != nil || len(obs) != 1 || obs[0] != seen {
			t.Errorf("layout %d: %+v, %v", layout, obs, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	_, request := weir.Request{Resources: []weir.Resource{orders.Take(1), orders.Take(-1)}}.Encode(0)
	_, guard := weir.Request{Guards: []weir.Guard{{Tracker: backend, Threshold: -1}}}.Encode(0)
	_, report := weir.EncodeReport(0, backend.Took(0), weir.Observation{})
	_, _, config := (&weir.Config{}).Core()
	for want, err := range map[string]error{
		"Resources[1].Tokens": request, "Guards[0].Threshold": guard, "Observations[1].Tracker": report, "Key": config,
	} {
		var field *weir.ConfigError
		if !errors.As(err, &field) || field.Field != want {
			t.Errorf("%v, want one about %s", err, want)
		}
	}
}

// What the core says of a request comes out as Acquire would say it.
func TestDecisionOfACompletion(t *testing.T) {
	r := ordersIf()
	done := core.Completion{
		Outcome: core.Rejected, Server: 1000, Round: 1, Elapsed: 25 * time.Millisecond,
		Guards:    []core.GuardResult{{Latency: 300}},
		Resources: []core.ResourceResult{{ActualRate: 99, Deficit: 2}},
	}
	d, err := r.Decision(&done)
	if err != nil || d.Granted() || d.Server() != 1000 || d.Round() != 1 || d.Elapsed() != 25*time.Millisecond {
		t.Fatalf("%v, %v", d, err)
	}
	if got := d.Resources(); len(got) != 1 || got[0] != (weir.ResourceResult{Resource: r.Resources[0], ActualRate: 99, Deficit: 2}) {
		t.Errorf("%v", got)
	}
	if got := d.Guards(); len(got) != 1 || got[0] != (weir.GuardResult{Guard: r.Guards[0], Latency: 300 * time.Millisecond}) {
		t.Errorf("%v", got)
	}
	done.Outcome = core.Granted
	if d, err := r.Decision(&done); err != nil || !d.Granted() {
		t.Errorf("%v, %v", d, err)
	}
}

func TestNoDecisionOfACompletion(t *testing.T) {
	broken := errors.New("the cable is cut")
	r := ordersIf()
	seen := core.Seen{Servers: 2, Endpoints: 3}
	d, err := r.Decision(&core.Completion{Outcome: core.TimedOut, Elapsed: time.Second, Seen: seen})
	var timeout *weir.TimeoutError
	if !errors.As(err, &timeout) || timeout.Elapsed != time.Second || timeout.Seen != seen || len(d.Resources()) != 0 {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := r.Decision(&core.Completion{Outcome: core.SendFailed, Err: broken}); !errors.Is(err, weir.ErrIO) || !errors.Is(err, broken) {
		t.Error(err)
	}
	for _, c := range []core.Completion{
		{}, // none
		{Outcome: core.Granted, Resources: make([]core.ResourceResult, 1)},
		{Outcome: core.Granted, Guards: make([]core.GuardResult, 1)},
		{Outcome: core.Granted, Guards: make([]core.GuardResult, 1), Resources: make([]core.ResourceResult, 2)},
	} {
		if d, err := r.Decision(&c); err == nil || d.Granted() {
			t.Errorf("%+v: %v", c, d)
		}
	}
}

func TestCoreError(t *testing.T) {
	if err := weir.CoreError(nil); err != nil {
		t.Error(err)
	}
	for in, want := range map[error]error{
		core.ErrNoServers: weir.ErrNoServers, core.ErrTooManyInFlight: weir.ErrTooManyInFlight, core.ErrClosed: weir.ErrClosed,
	} {
		if err := weir.CoreError(in); !errors.Is(err, want) {
			t.Errorf("%v became %v", in, err)
		}
	}
	var field *weir.ConfigError
	if err := weir.CoreError(&core.FieldError{Field: "Limits.Servers", Reason: "no"}); !errors.As(err, &field) || field.Field != "Limits.Servers" {
		t.Error(err)
	}
}

// A core is made of a client's configuration.
func TestConfigCore(t *testing.T) {
	key, err := apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cfg := weir.Config{Key: key, Zone: "rl.test", Layout: wire.Layout1, MaxInFlight: 3}
	made, servers, err := cfg.Core()
	if err != nil || made.Domain != "c-7.rl.test" || made.Layout != wire.Layout1 || made.MaxInFlight != 3 || len(servers) != 0 {
		t.Errorf("%+v, %v, %v", made, servers, err)
	}
	at := netip.MustParseAddrPort("127.0.0.1:9")
	cfg = weir.Config{Key: key, Servers: []discovery.Server{{ID: 5, Addrs: []netip.AddrPort{at}}}}
	made, servers, err = cfg.Core()
	if err != nil || made.Domain != "" || len(servers) != 1 || servers[0].ID != 5 || servers[0].Endpoints[0] != at {
		t.Fatalf("%+v, %v, %v", made, servers, err)
	}
	made.Entropy = strings.NewReader(strings.Repeat("x", 100))
	c, err := core.New(made)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetMembership(core.Time{}, servers); err != nil {
		t.Error(err)
	}
}

// oneName answers for one name of each kind, with one family of its addresses.
type oneName struct{ discovery.Resolver }

var errNoIPv6 = errors.New("nobody said anything of IPv6")

func (oneName) LookupSRV(_ context.Context, name string) ([]discovery.SRV, time.Duration, error) {
	if name != "_ratelimitly._udp.c-7.rl.test" {
		return nil, 0, discovery.ErrNotFound
	}
	return []discovery.SRV{{Target: "s-1000.rl.test.", Port: 29292}}, time.Minute, nil
}

func (oneName) LookupAddrs(context.Context, string) ([]netip.Addr, time.Duration, error) {
	partial := &discovery.PartialError{Network: "ip6", Err: errNoIPv6}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, 10 * time.Second, partial
}

// A core with a domain is answered by a resolver, and knows its server then.
func TestLookUp(t *testing.T) {
	key, err := apikey.New(apikey.AuthAES, 7, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := (&weir.Config{Key: key, Zone: "rl.test"}).Core()
	if err != nil {
		t.Fatal(err)
	}
	made.Entropy = rand.Reader
	c, err := core.New(made)
	if err != nil {
		t.Fatal(err)
	}
	now := core.Time{Wall: time.Now().UnixMilli()}
	c.HandleTimer(now)
	var ev core.Event
	for c.PollEvent(&ev) {
		if ev.Kind != core.EventLookup {
			continue
		}
		a := weir.LookUp(t.Context(), oneName{}, ev.Lookup)
		if a.Lookup != ev.Lookup || ev.Lookup.Kind == core.LookupAddrs && (!a.Addrs.FailedIPv6 || a.Addrs.FailedIPv4 || !errors.Is(a.Partial, errNoIPv6)) {
			t.Errorf("%+v", a)
		}
		a.HandTo(c, now)
	}
	if known := c.Membership(); len(known) != 1 || known[0].Endpoints[0] != netip.MustParseAddrPort("127.0.0.1:29292") {
		t.Errorf("%v", known)
	}
	if a := weir.LookUp(t.Context(), oneName{}, core.Lookup{Kind: core.LookupSRV, Name: "x"}); !errors.Is(a.SRV.Err, discovery.ErrNotFound) {
		t.Errorf("%+v", a)
	}
}
