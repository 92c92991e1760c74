package server

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
)

// A tenant whose key lets no request be answered is told of, at the start and when it
// comes by a reload.
func TestMuteTenantIsToldOf(t *testing.T) {
	q := apikey.DefaultQuotas()
	q.DedupTTL = 0
	mute, err := apikey.NewLegacy(apikey.AuthAES, 8, q, entropy(8))
	if err != nil {
		t.Fatal(err)
	}
	const warning = `every request is dropped (ttl); issue keys with weir key new" tenants=[old]`
	good := tenantsFile(tenantLine("shop", newKey(t, apikey.AuthAES, 7)))
	both := tenantsFile(tenantLine("shop", newKey(t, apikey.AuthAES, 7)), tenantLine("old", mute))
	s := start(t, Config{TenantsFile: tempFile(t, both), LegacyKeys: true})
	if n := strings.Count(s.log.String(), warning); n != 1 {
		t.Errorf("told %d times at the start:\n%s", n, s.log)
	}
	path := tempFile(t, good)
	s = start(t, Config{TenantsFile: path, LegacyKeys: true})
	if strings.Contains(s.log.String(), "every request is dropped") {
		t.Errorf("told without a cause:\n%s", s.log)
	}
	writeFile(t, path, both)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, warning, 1)
}

// DNS that sends clients to a family which is not listened on is told of.
func TestAdvertisedFamily(t *testing.T) {
	const warning = "DNS tells clients an address of a family that is not listened on"
	for _, c := range []struct {
		listen, advertise []string
		want              bool
	}{
		{[]string{"127.0.0.1:0"}, nil, false},
		{[]string{"0.0.0.0:0"}, []string{"192.0.2.9"}, false},
		{[]string{"0.0.0.0:0"}, []string{"192.0.2.9", "2001:db8::9"}, true},
		{[]string{"127.0.0.1:0"}, []string{"::ffff:192.0.2.9"}, false},
		{[]string{"127.0.0.1:0"}, []string{"[2001:db8::9]:1"}, true},
	} {
		s := start(t, Config{
			Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}},
			Listen:  c.listen, Advertise: c.advertise, DNS: "127.0.0.1:0", Zone: "rl.test",
		})
		if got := strings.Contains(s.log.String(), warning); got != c.want {
			t.Errorf("%v advertised as %v: told %t, want %t", c.listen, c.advertise, got, c.want)
		}
	}
}

// A server that starts a millisecond later is younger, whatever chance adds.
func TestRestartedWithinTheSecond(t *testing.T) {
	second := time.UnixMilli(testTime).Truncate(time.Second)
	var before ident.ServerID
	for ms := range 1000 {
		s := &Server{settings: &settings{Config: Config{Entropy: entropy(byte(ms * 37))}}}
		start := second.Add(time.Duration(ms) * time.Millisecond)
		if err := s.identify(start); err != nil {
			t.Fatal(err)
		}
		if ms > 0 && !before.Older(s.id) {
			t.Fatalf("started %d ms into the second, the server is not younger than a millisecond before", ms)
		}
		if !s.id.Start().Equal(second.UTC()) {
			t.Fatalf("the ID says %v, want %v", s.id.Start(), second.UTC())
		}
		before = s.id
	}
}

// Two that start in the same millisecond are told apart by chance.
func TestStartedInOneMillisecond(t *testing.T) {
	ids := make(map[ident.ServerID]bool)
	for seed := range byte(20) {
		s := &Server{settings: &settings{Config: Config{Entropy: entropy(seed)}}}
		if err := s.identify(time.UnixMilli(testTime)); err != nil {
			t.Fatal(err)
		}
		ids[s.id] = true
	}
	if len(ids) < 19 {
		t.Errorf("20 servers have %d IDs", len(ids))
	}
}
