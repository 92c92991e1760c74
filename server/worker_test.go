package server

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/internal/vectors"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

const testServer ident.ServerID = 0x0000_0BAD_CAFE_F00D

// workerRules are the engine rules of tests that need none of their own.
func workerRules() engineRules {
	return engineRules{skew: 5000, dedupCap: 2000, maxLabels: DefaultMaxLabels, entropy: entropy(1)}
}

// newWorker makes a worker without a socket, whose tenants have been there for a second.
func newWorker(tb testing.TB, clock *fakeClock, rules engineRules, tenants ...Tenant) *worker {
	tb.Helper()
	if bad := checkTenants(tenants, netip.AddrPort{}); bad != nil {
		tb.Fatal(bad)
	}
	r := newRegistry(rules)
	if _, err := r.set(clock.Now(), tenants); err != nil {
		tb.Fatal(err)
	}
	clock.advance(time.Second)
	sealer, err := wire.NewSealer(entropy(2))
	if err != nil {
		tb.Fatal(err)
	}
	return &worker{id: testServer, clock: clock, registry: r, counts: new(serverCounts), sealer: sealer, out: make([]byte, wire.BufferSize)}
}

// ask hands a datagram to the worker as if it came from peer.
func (w *worker) ask(b []byte) []byte { return w.askFrom(peer, b) }

func (w *worker) askFrom(from netip.AddrPort, b []byte) []byte {
	return w.handle(w.clock.Now(), &udp.Datagram{Buf: b, N: len(b), Peer: from})
}

func anyKey(tb testing.TB, text string) apikey.Key {
	tb.Helper()
	k, err := apikey.ParseAny(text)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// vectorWorker makes a worker with the tenant of a vector's key, at the vector's time.
func vectorWorker(tb testing.TB, k apikey.Key, at uint64) (*worker, *fakeClock) {
	tb.Helper()
	clock := &fakeClock{now: limiter.Time{Mono: 1, Wall: at - 1000}}
	return newWorker(tb, clock, workerRules(), Tenant{Keys: []apikey.Key{k}, Name: "vector"}), clock
}

// Every request that another implementation sent gets the answer that a fresh server
// owes it, in its own layout and mode, and its repeat gets the same once more.
func TestRequestVectors(t *testing.T) {
	for _, v := range vectors.Requests(t) {
		t.Run(v.Case, func(t *testing.T) {
			key := anyKey(t, v.Key)
			w, clock := vectorWorker(t, key, v.Time)
			c := newClient(t, key)
			var asked wire.RequestView
			if err := wire.ParseRequest(v.PDU, &asked); err != nil {
				t.Fatal(err)
			}
			layout := wire.Layout(v.Layout)
			rates, deficits, granted := freshAnswer(&v)
			for round, want := range []limiter.Verdict{verdictOf(granted, false), verdictOf(granted, true)} {
				answer := w.ask(v.Datagram)
				if len(answer) == 0 || len(answer) > len(v.Datagram) {
					t.Fatalf("round %d: an answer of %d bytes to a request of %d; dropped: %s", round, len(answer), len(v.Datagram), drops(w))
				}
				r := c.open(answer, layout)
				if r.header.KeyID != uint64(testServer) || r.header.UniqueID != wire.UniqueID(v.Identity) ||
					r.header.Timestamp != clock.Now().Wall || r.header.Steering == 0 || r.header.Mgmt != 0 {
					t.Errorf("round %d: header is %+v", round, r.header)
				}
				if r.view.Guards() != len(v.Guards) || r.view.Resources() != len(v.Resources) {
					t.Fatalf("round %d: %d guards and %d resources, want %d and %d", round, r.view.Guards(), r.view.Resources(), len(v.Guards), len(v.Resources))
				}
				for i := range v.Guards {
					want := asked.Guard(i)
					if got := r.view.Guard(i); got != want { // latency 0 in both: nothing was reported
						t.Errorf("round %d: guard %d is %+v, want %+v", round, i, got, want)
					}
				}
				for i := range v.Resources {
					want := asked.Resource(i)
					want.Rate, want.Tokens = rates[i], deficits[i]
					if got := r.view.Resource(i); got != want {
						t.Errorf("round %d: resource %d is %+v, want %+v", round, i, got, want)
					}
				}
				if n := w.registry.tenants()[key.ID()].state.counts.verdicts[want].Load(); n != 1 {
					t.Errorf("round %d: %d times %v, want 1", round, n, want)
				}
				clock.advance(time.Millisecond)
			}
		})
	}
}

// freshAnswer is what a server without state owes a request without live samples.
func freshAnswer(v *vectors.Request) (rates []uint32, deficits []uint16, granted bool) {
	granted = true
	for _, g := range v.Guards {
		granted = granted && g.Threshold > 0
	}
	type bucket struct {
		name          string
		window, limit uint32
	}
	asked := make(map[bucket]uint32)
	for _, r := range v.Resources {
		b := bucket{string(r.Bucket), r.Window, r.Limit}
		asked[b] += uint32(r.Tokens)
		limit := r.Limit
		if r.Window == 0 {
			limit = 0
		}
		missing := max(0, int64(asked[b])-int64(limit))
		deficits = append(deficits, uint16(min(missing, int64(r.Tokens))))
		granted = granted && deficits[len(deficits)-1] == 0
	}
	for _, r := range v.Resources {
		rate := uint32(0)
		if granted {
			rate = asked[bucket{string(r.Bucket), r.Window, r.Limit}]
		}
		rates = append(rates, rate)
	}
	return rates, deficits, granted
}

func verdictOf(granted, repeat bool) limiter.Verdict {
	switch {
	case granted && repeat:
		return limiter.RepeatGranted
	case granted:
		return limiter.Granted
	case repeat:
		return limiter.RepeatRejected
	}
	return limiter.Rejected
}

// Every report that another implementation sent is taken in, once, and not answered.
func TestReportVectors(t *testing.T) {
	for _, v := range vectors.Reports(t) {
		t.Run(v.Case, func(t *testing.T) {
			key := anyKey(t, v.Key)
			w, _ := vectorWorker(t, key, v.Time)
			state := w.registry.tenants()[key.ID()].state
			for round := range uint64(2) {
				if answer := w.ask(v.Datagram); answer != nil {
					t.Fatalf("round %d: a report is answered with %x", round, answer)
				}
				if n := state.counts.verdicts[limiter.Observed].Load(); n != 1 {
					t.Fatalf("round %d: taken in %d times, want 1; dropped: %s", round, n, drops(w))
				}
				if n := state.counts.verdicts[limiter.DropReplayed].Load(); n != round {
					t.Errorf("round %d: %d replays counted", round, n)
				}
			}
			trackers := make(map[string]bool)
			for _, o := range v.Observations {
				trackers[fmt.Sprint(string(o.Tracker), o.TTL, o.MaxSamples, o.BufferSize, o.MinSamples)] = true
			}
			if n := state.stats().Trackers; n != len(trackers) {
				t.Errorf("%d trackers are live, want %d", n, len(trackers))
			}
		})
	}
}

// PDUs that a careless layout rule misreads are answered in the layout that they are in.
func TestLayoutTraps(t *testing.T) {
	key := newKey(t, apikey.AuthNone, 3)
	for _, v := range vectors.Traps(t) {
		w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
		c := newClient(t, key)
		// In none mode a datagram is a header, four bytes and the PDU.
		datagram := slices.Concat(c.request(&wire.Request{Layout: wire.Layout2, DedupTTL: 60})[:44], v.PDU)
		answer := w.ask(datagram)
		if v.Kind == "report" {
			if n := w.registry.tenants()[3].state.counts.verdicts[limiter.Observed].Load(); n != 1 || answer != nil {
				t.Errorf("%s: taken in %d times, answered with %x", v.Case, n, answer)
			}
			continue
		}
		r := c.open(answer, wire.Layout(v.Layout))
		if r.view.Guards() != v.Guards || r.view.Resources() != v.Resources || len(answer) > len(datagram) {
			t.Errorf("%s: answered with %d guards and %d resources", v.Case, r.view.Guards(), r.view.Resources())
		}
	}
}

// checkout is a request for tokens of one bucket and of a tracker that nobody reports to.
func checkout(tokens uint16) *wire.Request {
	return &wire.Request{
		Layout: wire.Layout2, DedupTTL: 60,
		Guards:    []wire.Guard{{Tracker: ident.Tracker("inventory", 10_000, 32, 1), TTL: 10_000, MaxSamples: 32, MinSamples: 1, Threshold: 100}},
		Resources: []wire.Resource{{Bucket: ident.Bucket("checkout", 1000, 10), Window: 1000, Rate: 10, Tokens: tokens}},
	}
}

func observation(ms uint32) wire.Observation {
	return wire.Observation{Tracker: ident.Tracker("inventory", 10_000, 32, 1), TTL: 10_000, MaxSamples: 32, MinSamples: 1, Latency: ms}
}

// A report reaches the guards of later requests, a bucket the later requests of all.
func TestDecisionsDependOnWhatWasBefore(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	ask := func(tokens uint16) reply {
		c.next()
		return c.open(w.ask(c.request(checkout(tokens))), wire.Layout2)
	}
	if r := ask(6); !r.granted() || r.view.Resource(0).Rate != 6 {
		t.Errorf("6 of 10 are not granted: %+v", r.view.Resource(0))
	}
	if r := ask(6); r.granted() || r.view.Resource(0).Tokens != 2 || r.view.Resource(0).Rate != 6 {
		t.Errorf("12 of 10: %+v", r.view.Resource(0))
	}
	c.next()
	if answer := w.ask(c.report(observation(100))); answer != nil {
		t.Errorf("a report is answered with %x", answer)
	}
	if r := ask(1); r.granted() || r.view.Guard(0).Latency != 100 || r.view.Resource(0).Tokens != 0 {
		t.Errorf("a guard of 100 ms passes at 100 ms: %+v", r.view.Guard(0))
	}
}

// A guard that tripped lets requests through at a pace, unless the tenant has it plain.
func TestPacingOfTenant(t *testing.T) {
	for _, plain := range []bool{false, true} {
		key := newKey(t, apikey.AuthAES, 7)
		clock := newFakeClock()
		w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}, NoPacing: plain})
		c := newClient(t, key)
		w.ask(c.report(observation(150)))
		c.next()
		if r := c.open(w.ask(c.request(checkout(1))), wire.Layout2); r.granted() {
			t.Error("the request that trips the guard is granted")
		}
		clock.advance(time.Second)
		c.next()
		if r := c.open(w.ask(c.request(checkout(1))), wire.Layout2); r.granted() == plain {
			t.Errorf("plain %v: a second later a request is granted: %v", plain, r.granted())
		}
	}
}

// A repeat is answered with a time and a nonce of its own.
func TestRepeatIsSealedAnew(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	b := c.request(checkout(1))
	nonce := func(b []byte) string {
		var e wire.Envelope
		if err := wire.ParseEnvelope(b, &e); err != nil {
			t.Fatal(err)
		}
		return string(e.Nonce())
	}
	first := w.ask(b)
	firstNonce, firstTime := nonce(first), c.open(first, wire.Layout2).header.Timestamp
	clock.advance(5 * time.Millisecond)
	second := w.ask(b)
	if nonce(second) == firstNonce {
		t.Error("two answers share a nonce")
	}
	if at := c.open(second, wire.Layout2).header.Timestamp; at != firstTime+5 {
		t.Errorf("the repeat's answer is of %d, want %d", at, firstTime+5)
	}
}

// Two keys of one tenant, of two modes, share state; each is answered under itself,
// and the old one's use is told.
func TestRotation(t *testing.T) {
	newer := newKey(t, apikey.AuthAES, 7)
	older := newKey(t, apikey.AuthCookie, 7)
	oldest, err := apikey.NewLegacy(apikey.AuthAES, 7, apikey.DefaultQuotas(), entropy(77))
	if err != nil {
		t.Fatal(err)
	}
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{newer, older, oldest}})
	counts := &w.registry.tenants()[7].state.counts
	for i, k := range []apikey.Key{newer, older, oldest} {
		c := newClient(t, k)
		c.header.UniqueID[15] = byte(i + 1)
		r := c.open(w.ask(c.request(checkout(1))), wire.Layout2)
		if got := r.view.Resource(0).Rate; got != uint32(i+1) {
			t.Errorf("key %d: the bucket has %d tokens, want %d", i, got, i+1)
		}
		if got := counts.oldKeyUses.Load(); got != uint64(i) {
			t.Errorf("key %d: old keys were used %d times, want %d", i, got, i)
		}
	}
	// What is forged in a mode that any of the keys has is no question of the mode.
	for n, k := range []apikey.Key{newer, older} {
		b := newClient(t, k).request(checkout(1))
		b[50] ^= 1 // the cookie or the nonce
		if answer := w.ask(b); answer != nil || counts.dropped[dropAuth].Load() != uint64(n+1) {
			t.Errorf("%v: a forged datagram is answered with %x; dropped: %s", k, answer, drops(w))
		}
	}
	if got := counts.oldKeyLastMs.Load(); got != clock.Now().Wall {
		t.Errorf("last use of an old key at %d, want %d", got, clock.Now().Wall)
	}
}

// What a tenant does is not seen by another.
func TestTenantsAreApart(t *testing.T) {
	a, b := newKey(t, apikey.AuthAES, 1), newKey(t, apikey.AuthAES, 2)
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{a}}, Tenant{Keys: []apikey.Key{b}})
	for _, k := range []apikey.Key{a, b} {
		c := newClient(t, k) // with the same identity
		if r := c.open(w.ask(c.request(checkout(10))), wire.Layout2); !r.granted() {
			t.Errorf("%v: 10 of 10 are not granted", k)
		}
	}
	// A datagram under a tenant's key ID and another's secret opens with neither.
	forger, err := apikey.New(apikey.AuthAES, 2, apikey.DefaultQuotas(), entropy(1))
	if err != nil {
		t.Fatal(err)
	}
	if forger.Secret() != a.Secret() {
		t.Fatal("the forger does not use the other tenant's secret")
	}
	c := newClient(t, forger)
	c.next()
	if answer := w.ask(c.request(checkout(0))); answer != nil {
		t.Errorf("a stranger's datagram is answered with %x", answer)
	}
	if n := w.registry.tenants()[2].state.counts.dropped[dropAuth].Load(); n != 1 {
		t.Errorf("%d datagrams dropped as %v, want 1", n, dropAuth)
	}
}

// A larger tenant header and bytes behind the PDU are no fault, and do not grow the
// answer.
func TestWhatIsIgnored(t *testing.T) {
	key := newKey(t, apikey.AuthCookie, 7)
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	plain := c.request(checkout(1))
	larger := append([]byte{}, plain[:40]...)
	larger[2] = 48
	larger = append(larger, 1, 2, 3, 4, 5, 6, 7, 8)
	larger = append(larger, plain[40:]...)
	larger = append(larger, "behind"...)
	larger[36] = 1 // steering means nothing in a request
	r := c.open(w.ask(larger), wire.Layout2)
	if !r.granted() {
		t.Error("not granted")
	}
	if again := w.ask(plain); again == nil {
		t.Errorf("the same PDU in a plain header is no repeat; dropped: %s", drops(w))
	}
}

// The longest request of each mode and layout is answered within its own length.
func TestLongestRequests(t *testing.T) {
	for _, auth := range []apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES} {
		for _, layout := range []wire.Layout{wire.Layout1, wire.Layout2} {
			t.Run(fmt.Sprint(auth, layout), func(t *testing.T) {
				key := newKey(t, auth, 7)
				w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
				c := newClient(t, key)
				req := &wire.Request{Layout: layout, DedupTTL: 300}
				for i := uint32(1); wire.RequestSize(auth, layout, int(i), 0, 0) <= wire.MaxDatagram; i++ {
					req.Guards = append(req.Guards, wire.Guard{Tracker: ident.Tracker("t", i, 1, 1), TTL: i, MaxSamples: 1, MinSamples: 1, Threshold: math.MaxUint32})
				}
				b := c.request(req)
				answer := w.ask(b)
				if len(answer) != len(b) {
					t.Errorf("%d bytes are answered with %d", len(b), len(answer))
				}
				if r := c.open(answer, layout); r.view.Guards() != len(req.Guards) || !r.granted() {
					t.Errorf("%d guards of %d, granted: %v", r.view.Guards(), len(req.Guards), r.granted())
				}
			})
		}
	}
}
