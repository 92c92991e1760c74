package session_test

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/server"
	"github.com/weirhq/weir/session"
	"github.com/weirhq/weir/wire"
)

// patience asks every two seconds for minutes, and a patient key allows that: no
// deadline decides a test.
func patience() policy.Policy {
	p := policy.StrictOldest()
	p.Unit, p.Replays = 2*time.Second, 100
	return p
}

func patientKey(t *testing.T, auth apikey.Auth, id uint64) apikey.Key {
	t.Helper()
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = 1 << 30
	key, err := apikey.NewLegacy(auth, id, quotas, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// serve runs an r-server with its DNS until the test ends.
func serve(t *testing.T, keys ...apikey.Key) discovery.Resolver {
	t.Helper()
	var tenants []server.Tenant
	for _, k := range keys {
		tenants = append(tenants, server.Tenant{Keys: []apikey.Key{k}, InsecureAuth: true})
	}
	s, err := server.New(server.Config{
		Listen: []string{"127.0.0.1:0"}, Tenants: tenants, DedupTTLCap: time.Hour, DNS: "127.0.0.1:0", Zone: "rl.test",
	})
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
	resolver, err := discovery.NewDNS(s.DNSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return resolver
}

// From a zone to decisions: real DNS, real sockets, a real server, in every mode
// and layout, and one session for two keys.
func TestSessionAndServer(t *testing.T) {
	for _, auth := range []apikey.Auth{apikey.AuthCookie, apikey.AuthAES} {
		for _, layout := range []wire.Layout{wire.Layout1, wire.Layout2} {
			t.Run(auth.String()+"/"+layout.String(), func(t *testing.T) {
				keys := []apikey.Key{patientKey(t, auth, 7), patientKey(t, apikey.AuthAES, 8)}
				resolver := serve(t, keys...)
				s, err := session.New(session.Config{Zone: "rl.test", Resolver: resolver, Policy: patience(), Layout: layout})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if _, err := session.Close(s); err != nil {
						t.Error(err)
					}
				}()
				for _, key := range keys { // each has buckets of its own
					s = converse(t, s, key)
				}
			})
		}
	}
}

// converse takes a bucket's tokens, reports until a guard trips, and returns the
// state after that.
func converse(t *testing.T, s session.State, key apikey.Key) session.State {
	t.Helper()
	logins := weir.Bucket("login", 2, time.Hour)
	database := weir.Tracker("database", weir.TrackerOptions{TTL: time.Hour, MaxSamples: 8, MinSamples: 2, BufferSize: 8})
	ask := func(r weir.Request) weir.Decision {
		t.Helper()
		var d weir.Decision
		var err error
		if s, d, err = session.Execute(t.Context(), s, key, r); err != nil {
			t.Fatal(err)
		}
		return d
	}
	var granted []bool
	for range 3 {
		granted = append(granted, ask(weir.Request{Resources: []weir.Resource{logins.Take(1)}}).Granted())
	}
	if !slices.Equal(granted, []bool{true, true, false}) {
		t.Errorf("granted %v", granted)
	}
	guard := weir.Request{Guards: []weir.Guard{database.Below(100 * time.Millisecond)}}
	if d := ask(guard); !d.Granted() {
		t.Errorf("a guard without samples: %v", d)
	}
	for range 8 {
		var err error
		if s, err = session.Report(s, key, database.Took(250*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	for ask(guard).Granted() { // a report has no answer
		runtime.Gosched()
	}
	return s
}

// When a call returns, whatever way, nothing of it is left: the very goroutines
// that were there before are.
func TestNothingIsLeft(t *testing.T) {
	key := patientKey(t, apikey.AuthAES, 7)
	resolver := serve(t, key)
	bucket := weir.Bucket("b", 1<<20, time.Minute)
	one := weir.Request{Resources: []weir.Resource{bucket.Take(1)}}
	s, err := session.New(session.Config{Zone: "rl.test", Resolver: resolver, Policy: patience()})
	if err != nil {
		t.Fatal(err)
	}
	stranger := patientKey(t, apikey.AuthAES, 7) // of the same ID: is found, and never answered
	for range 20 {
		if s, _, err = session.Execute(t.Context(), s, key, one); err != nil {
			t.Fatal(err)
		}
		ours(t)
		if s, err = session.Discover(t.Context(), s, stranger); err != nil {
			t.Fatal(err)
		}
		ours(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if s, _, err = session.Execute(ctx, s, stranger, one); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
		ours(t)
	}
	if _, err = session.Close(s); err != nil {
		t.Error(err)
	}
	ours(t)
}

// ours fails if a goroutine of the package runs. One that has ended but for its
// last instructions does not count.
func ours(t *testing.T) {
	t.Helper()
	const attempts = 100
	var stacks string
	for range attempts {
		buf := make([]byte, 1<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "weir/session.(*") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("still runs:\n%s", stacks)
}
