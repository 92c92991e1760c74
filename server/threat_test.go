package server

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// What somebody without the key can make of one datagram that they saw, in each mode: in
// none and cookie mode another request, which is executed; in AES mode nothing.
func TestWhatASeenDatagramIsGoodFor(t *testing.T) {
	for _, auth := range allModes {
		b := newDropBench(t)
		c := map[apikey.Auth]*client{apikey.AuthNone: b.none, apikey.AuthCookie: b.cookie, apikey.AuthAES: b.aes}[auth]
		seen := c.request(checkout(1))
		b.answered(t, seen)
		forged := slices.Clone(seen)
		forged[12] ^= 0xff        // another identity,
		forged[len(forged)-4] = 9 // and nine tokens in place of one
		answer := b.ask(forged)
		if executed := answer != nil; executed != (auth != apikey.AuthAES) {
			t.Errorf("%v: what was forged from a seen datagram is executed: %v", auth, executed)
		}
		if auth == apikey.AuthAES {
			if drops(b.worker) != "map[auth:1]" {
				t.Errorf("dropped: %s", drops(b.worker))
			}
		} else if r := c.open(answer, wire.Layout2); r.view.Resource(0).Rate != 10 {
			t.Errorf("%v: the forged tokens count for %d", auth, r.view.Resource(0).Rate)
		}
	}
}

// A captured datagram is executed once by each server that it is sent to, and by none when
// it is no longer fresh.
func TestCapturedForAnotherServer(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	captured := c.request(checkout(4))
	w.ask(captured)
	otherClock := newFakeClock()
	other := newWorker(t, otherClock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	for round := range 3 {
		if r := c.open(other.ask(captured), wire.Layout2); r.view.Resource(0).Rate != 4 {
			t.Errorf("copy %d: the other server's bucket has %d tokens, want 4", round, r.view.Resource(0).Rate)
		}
	}
	otherClock.advance(time.Minute)
	late := newWorker(t, otherClock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	if late.ask(captured) != nil || drops(late) != "map[stale:1]" {
		t.Errorf("a copy of a minute ago: dropped %s", drops(late))
	}
}

// An answer that comes back as a question is none, to the server that gave it and to any
// other: nobody makes servers talk to each other.
func TestAnswerIsNoQuestion(t *testing.T) {
	for _, auth := range allModes {
		b := newDropBench(t)
		c := map[apikey.Auth]*client{apikey.AuthNone: b.none, apikey.AuthCookie: b.cookie, apikey.AuthAES: b.aes}[auth]
		answer := slices.Clone(b.ask(c.request(checkout(1))))
		if b.ask(answer) != nil || drops(b.worker) != "map[unknown_key:1]" {
			t.Errorf("%v: an answer: dropped %s", auth, drops(b.worker))
		}
		copy(answer[4:12], c.request(checkout(1))[4:12]) // under the tenant's key ID
		if b.ask(answer) != nil {
			t.Errorf("%v: an answer under a key ID is answered", auth)
		}
	}
}

// A key that was taken out opens nothing from the reload on.
func TestRetiredKeyOpensNothing(t *testing.T) {
	older, newer := newKey(t, apikey.AuthAES, 7), newKey(t, apikey.AuthCookie, 7)
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{newer, older}})
	c := newClient(t, older)
	if w.ask(c.request(checkout(1))) == nil {
		t.Fatal("the old key opens nothing")
	}
	if _, err := w.registry.set(clock.Now(), []Tenant{{Keys: []apikey.Key{newer}, Name: "7"}}); err != nil {
		t.Fatal(err)
	}
	c.next()
	if w.ask(c.request(checkout(1))) != nil || drops(w) != "map[mode:1]" {
		t.Errorf("a retired key: dropped %s", drops(w))
	}
}

// A tenant that tries everything, over all of its quotas, changes nothing of another's:
// its state, its answers, its floor, its room.
func TestGluttonLeavesItsNeighbor(t *testing.T) {
	small := func(q *apikey.Quotas) {
		q.RateBuckets, q.LatencyServices, q.LatencyBufferSize, q.MetricsLabels = 64, 8, 8, 8
	}
	bad, good := newKey(t, apikey.AuthAES, 1, small), newKey(t, apikey.AuthAES, 2, small)
	rules := workerRules()
	rules.identities, rules.answerBytes = 1024, 8192
	clock := newFakeClock()
	w := newWorker(t, clock, rules, Tenant{Keys: []apikey.Key{bad}}, Tenant{Keys: []apikey.Key{good}})
	neighbor := newClient(t, good)
	neighbor.header.Timestamp = clock.Now().Wall
	labeled := checkout(3)
	labeled.Label = "mine"
	kept := neighbor.request(labeled)
	w.ask(kept)
	neighbor.next()
	w.ask(neighbor.report(observation(50)))
	before := w.registry.tenants()[2].state.stats()

	c := newClient(t, bad)
	for i := range 20_000 {
		c.next()
		c.header.Timestamp = testTime + 1000 + uint64(i)/5
		q := &wire.Request{Layout: wire.Layout2, DedupTTL: 300, Label: fmt.Sprintf("label\x00%d", i)}
		for k := range 20 {
			q.Resources = append(q.Resources, wire.Resource{Bucket: ident.ID{byte(i), byte(i >> 8), byte(k)}, Window: math.MaxUint32, Rate: math.MaxUint32, Tokens: math.MaxUint16})
		}
		for k := range 4 {
			q.Guards = append(q.Guards, wire.Guard{Tracker: ident.ID{byte(k)}, TTL: math.MaxUint32, MaxSamples: math.MaxUint32, MinSamples: 1, Threshold: uint32(i)})
		}
		w.ask(c.request(q))
		c.next()
		w.ask(c.report(wire.Observation{Tracker: ident.ID{byte(i)}, TTL: math.MaxUint32, MaxSamples: math.MaxUint32, Latency: uint32(i)}))
	}
	st := w.registry.tenants()[1].state
	if s := st.stats(); s.Buckets > 64 || s.Trackers > 8 || s.Samples > 64 || s.Pacers > 64 || s.Identities > 1024 || s.Degraded == 0 || s.RefusedBlocks == 0 || s.DroppedBlocks == 0 ||
		int64(s.Memory) > w.registry.tenants()[1].room.worst() || len(st.labels.snapshot()) > 9 {
		t.Errorf("the glutton has %+v and %d labels", s, len(st.labels.snapshot()))
	}
	if after := w.registry.tenants()[2].state.stats(); after != before {
		t.Errorf("the neighbor had\n%+v and has\n%+v", before, after)
	}
	if r := neighbor.open(w.ask(kept), wire.Layout2); !r.granted() || r.view.Resource(0).Rate != 3 {
		t.Errorf("the neighbor's repeat is answered with %+v", r.view.Resource(0))
	}
	if n := labelCounts(&w.registry.tenants()[2].state.labels, limiter.Granted); len(n) != 1 || n["mine"] != 1 {
		t.Errorf("the neighbor's labels are %v", n)
	}
}
