package server

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// removal is a worker with one tenant that goes and comes back.
type removal struct {
	t      *testing.T
	clock  *fakeClock
	w      *worker
	c      *client
	tenant []Tenant
}

func newRemoval(t *testing.T) *removal {
	r := &removal{t: t, clock: newFakeClock(), tenant: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}, Name: "7"}}}
	r.w = newWorker(t, r.clock, workerRules(), r.tenant...)
	r.c = newClient(t, r.tenant[0].Keys[0])
	return r
}

func (r *removal) set(tenants []Tenant) {
	r.t.Helper()
	if _, err := r.w.registry.set(r.clock.Now(), tenants); err != nil {
		r.t.Fatal(err)
	}
}

// A worker that found the tenant before it was removed executes nothing after that:
// the one that comes back could not know.
func TestRemovedUnderAWorker(t *testing.T) {
	r := newRemoval(t)
	held := r.w.registry.tenants()[7]
	for name, captured := range map[string][]byte{
		"request": r.c.request(checkout(1)),
		"report":  r.c.report(wire.Observation{TTL: 1000, MaxSamples: 10}),
	} {
		if err := wire.ParseEnvelope(captured, &r.w.envelope); err != nil {
			t.Fatal(err)
		}
		pdu, key, err := held.open(&r.w.envelope, &r.w.scratch)
		if err != nil {
			t.Fatal(err)
		}
		r.set(nil)
		r.set(r.tenant)
		before := r.w.counts.dropped[dropUnknownKey].Load()
		if name == "request" {
			if r.w.handleRequest(r.clock.Now(), held, key, pdu, &udp.Datagram{Peer: peer}) != nil {
				t.Error("a request was executed for a tenant that is gone")
			}
		} else {
			r.w.handleReport(r.clock.Now(), held, pdu, peer)
		}
		if n := r.w.counts.dropped[dropUnknownKey].Load(); n != before+1 {
			t.Errorf("the %s was not dropped as unknown_key", name)
		}
	}
	if st := held.state.stats(); st.Identities != 0 {
		t.Errorf("%d datagrams were executed by what is gone", st.Identities)
	}
}

// A tenant that was gone for a moment goes on where it ended: what is stamped after
// all that it executed is executed at once.
func TestGoneForAMoment(t *testing.T) {
	r := newRemoval(t)
	request := checkout(1)
	captured := r.c.request(request)
	stamp := r.c.header.Timestamp
	if r.w.ask(captured) == nil {
		t.Fatal("no answer")
	}
	r.set(nil)
	r.set(r.tenant)
	if r.w.ask(captured) != nil {
		t.Error("a datagram was executed twice")
	}
	r.c.next()
	r.c.header.Timestamp = stamp + uint64(request.DedupTTL) // a copy of what was executed could say so
	if r.w.ask(r.c.request(request)) != nil {
		t.Error("a datagram as old as what was executed may be is executed")
	}
	r.c.header.Timestamp++
	if r.w.ask(r.c.request(request)) == nil {
		t.Errorf("the tenant is deaf; dropped %s", drops(r.w))
	}
}

// What was executed before a tenant went is kept in mind for as long as a copy of it could
// be fresh, over other reloads too; so what is stamped after it, and before the tenant
// comes back, is served.
func TestGoneOverReloads(t *testing.T) {
	r := newRemoval(t)
	captured := r.c.request(checkout(1))
	stamp := r.c.header.Timestamp
	if r.w.ask(captured) == nil {
		t.Fatal("no answer")
	}
	r.set(nil)
	for range 3 {
		r.clock.advance(time.Second)
		r.set(nil)
	}
	r.set(r.tenant)
	if r.w.ask(captured) != nil {
		t.Error("a datagram was executed twice")
	}
	r.c.next()
	r.c.header.Timestamp = stamp + 1000
	if r.w.ask(r.c.request(checkout(1))) == nil {
		t.Errorf("what came while the tenant was gone is refused; dropped %s", drops(r.w))
	}
}

// What is forgotten of tenants that went is not executed again if the clock goes back.
func TestGoneAndTheClockGoesBack(t *testing.T) {
	r := newRemoval(t)
	captured := r.c.request(checkout(1))
	if r.w.ask(captured) == nil {
		t.Fatal("no answer")
	}
	r.set(nil)
	r.clock.advance(11 * time.Second)
	r.set(nil)
	if n := len(r.w.registry.removed); n != 0 {
		t.Fatalf("%d tenants are remembered", n)
	}
	r.clock.advance(-13 * time.Second)
	r.set(r.tenant)
	if r.w.ask(captured) != nil {
		t.Error("a datagram was executed twice")
	}
}

// Of a tenant that was removed nothing is kept but when it had executed last, also if a
// worker met it a moment before.
func TestRemovedTenantIsFreed(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{key}, Name: "shop"}}, Clock: clock, Admin: "127.0.0.1:0"})
	c := dial(t, key, s.Addrs()[0])
	c.at = testTime
	labeled := checkout(1)
	labeled.Label = "api"
	c.acquire(labeled)
	if _, text := get(t, s, "/metrics"); !strings.Contains(text, `{tenant="shop"}`) {
		t.Fatal("the tenant is not shown")
	}
	state := weak.Make(s.registry.tenants()[7].state)
	engine := weak.Make(s.registry.tenants()[7].state.engine)
	if err := s.SetTenants(nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its state is freed", func() bool {
		runtime.GC()
		return state.Value() == nil && engine.Value() == nil
	})
	if _, text := get(t, s, "/metrics"); strings.Contains(text, "shop") || strings.Contains(text, `label="api"`) {
		t.Error("the tenant is still shown")
	}
}
