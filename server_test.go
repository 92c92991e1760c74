package weir_test

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/server"
	"github.com/weirhq/weir/wire"
)

// longKey returns a key under which servers remember requests for as long as
// they may, so that a test's policy can be patient.
func longKey(t testing.TB, auth apikey.Auth) apikey.Key {
	t.Helper()
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = 1 << 30
	key, err := apikey.NewLegacy(auth, 7, quotas, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// patience asks every two seconds for minutes: no deadline decides a test.
func patience() policy.Policy {
	p := policy.StrictOldest()
	p.Unit, p.Replays = 2*time.Second, 100
	return p
}

// serve runs an r-server on loopback, with DNS, until the test ends or it is
// closed.
func serve(t testing.TB, key apikey.Key, cfg server.Config) *server.Server {
	t.Helper()
	cfg.Listen = []string{"127.0.0.1:0"}
	cfg.Tenants = []server.Tenant{{Keys: []apikey.Key{key}}}
	cfg.DedupTTLCap = time.Hour
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := s.Run(context.Background()); err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	t.Cleanup(func() {
		s.Close()
		ended.Wait()
	})
	nextMillisecond()
	return s
}

// nextMillisecond returns when the wall clock shows another millisecond. What is
// dated at or before a server's start is a replay to it, and nothing else is
// this quick to ask.
func nextMillisecond() {
	for start := time.Now().UnixMilli(); time.Now().UnixMilli() == start; {
		runtime.Gosched()
	}
}

// From a key and a zone to decisions: real DNS, real sockets, a real server, in
// every mode and layout.
func TestClientAndServer(t *testing.T) {
	for _, auth := range []apikey.Auth{apikey.AuthCookie, apikey.AuthAES} {
		for _, layout := range []wire.Layout{wire.Layout1, wire.Layout2} {
			t.Run(auth.String()+"/"+layout.String(), func(t *testing.T) {
				key := longKey(t, auth)
				s := serve(t, key, server.Config{DNS: "127.0.0.1:0", Zone: "rl.test"})
				resolver, err := discovery.NewDNS(s.DNSAddr().String())
				if err != nil {
					t.Fatal(err)
				}
				client, err := weir.Dial(t.Context(), weir.Config{
					Key: key, Zone: "rl.test", Resolver: resolver, Policy: patience(), Layout: layout,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				if known := client.Servers(); len(known) != 1 || known[0].ID != s.ID() {
					t.Errorf("servers %v, want %v", known, s.ID())
				}
				exchangeWith(t, client)
			})
		}
	}
}

func exchangeWith(t *testing.T, client *weir.Client) {
	t.Helper()
	ctx := t.Context()
	three := weir.Bucket("three an hour", 3, time.Hour)
	plenty := weir.Bucket("plenty", 1000, time.Hour)
	db := weir.Tracker("db", weir.TrackerOptions{TTL: time.Hour, MaxSamples: 8, MinSamples: 1, BufferSize: 8})
	request := weir.Request{
		Resources: []weir.Resource{plenty.Take(1), three.Take(1)},
		Guards:    []weir.Guard{db.Below(100 * time.Millisecond)},
		Label:     "test",
	}
	for i := range 3 {
		d, err := client.Do(ctx, weir.Admission{Request: request, Trackers: []weir.LatencyTracker{}}, func(context.Context) error { return nil })
		if err != nil || !d.Granted() || d.Resources()[1].ActualRate != uint32(i+1) {
			t.Fatalf("request %d: %v, %v", i, d, err)
		}
	}
	// The fourth is rejected as a whole: the other bucket stays as it was.
	d, err := client.Acquire(ctx, request)
	r := d.Resources()
	if err != nil || d.Granted() || r[1].Deficit != 1 || r[1].NoRoom() || !r[0].Covered() || r[0].ActualRate != 3 {
		t.Errorf("%v, %v", d, err)
	}
	// A slow observation trips the guard. UDP is not ordered: ask until it has
	// arrived.
	if err := client.Report(db.Took(250 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	guarded := weir.Request{Guards: request.Guards}
	for {
		_, err := client.Do(ctx, weir.Admission{Request: guarded, Trackers: []weir.LatencyTracker{}}, func(context.Context) error { return nil })
		var rejected *weir.RejectedError
		if errors.As(err, &rejected) {
			if g := rejected.Decision.Guards()[0]; g.Latency != 250*time.Millisecond || g.Passed {
				t.Errorf("%v", g)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A client under another key gets no answer, and its error says what to look
// for.
func TestWrongKey(t *testing.T) {
	s := serve(t, longKey(t, apikey.AuthAES), server.Config{})
	client, err := weir.New(weir.Config{
		Key:     longKey(t, apikey.AuthAES),
		Servers: []discovery.Server{{ID: s.ID(), Addrs: s.Addrs()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Acquire(t.Context(), weir.Request{Resources: []weir.Resource{weir.Bucket("x", 1, time.Second).Take(1)}})
	if !errors.Is(err, weir.ErrTimeout) {
		t.Errorf("%v", err)
	}
}
