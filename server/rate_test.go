package server

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

func at(ns int64) limiter.Time { return limiter.Time{Mono: ns} }

// Whatever the arrivals, what a gate admits in any span is within the rate and one
// second's worth, and it refuses none that would have been.
func TestRateGateIsExact(t *testing.T) {
	for _, rate := range []int{1, 3, 7, 1000, 999_983} {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, uint64(rate)))
			var g rateGate
			var admitted []int64
			now := int64(12345)
			for range 3000 {
				if r.IntN(4) > 0 {
					now += r.Int64N(4 * nsPerSecond / int64(rate))
				}
				// Room: from every admitted one on, and for one more, there are at most
				// rate * (t + 1).
				room := true
				for i, from := range admitted {
					if int64(len(admitted)-i+1)*nsPerSecond > int64(rate)*(now-from+nsPerSecond) {
						room = false
						break
					}
				}
				if len(admitted) > 2*rate+64 { // what is older has no say
					admitted = admitted[len(admitted)-rate-32:]
				}
				if got := g.admit(at(now), rate); got != room {
					t.Fatalf("rate %d, seed %d, at %d: admitted %v, room %v", rate, seed, now, got, room)
				}
				if room {
					admitted = append(admitted, now)
				}
			}
		}
	}
}

// drain asks until the gate refuses and returns how many it admitted.
func drain(g *rateGate, now limiter.Time, rate int) (n int) {
	for g.admit(now, rate) {
		n++
	}
	return n
}

// A changed rate keeps what was saved up, within the new second's worth, and gives
// nothing away.
func TestRateGateChanges(t *testing.T) {
	var g rateGate
	if n := drain(&g, at(0), 100); n != 100 {
		t.Errorf("a new gate admits %d, want 100", n)
	}
	if n := drain(&g, at(0), 1000); n != 0 {
		t.Errorf("a raised rate admits %d at once", n)
	}
	if n := drain(&g, at(nsPerSecond/2), 1000); n != 500 {
		t.Errorf("half a second later %d, want 500", n)
	}
	if n := drain(&g, at(nsPerSecond/4), 1000); n != 0 {
		t.Errorf("a clock that is behind admits %d", n)
	}
	if n := drain(&g, at(100*nsPerSecond), 10); n != 10 {
		t.Errorf("a lowered rate admits %d after a long pause, want 10", n)
	}
	if n := drain(&g, at(1<<62), maxMaxRate/1000); n != maxMaxRate/1000 {
		t.Errorf("the highest rates overflow: %d", n)
	}
}

// A tenant's rate is its own, is refilled by time, and survives a reload.
func TestMaxRateOfTenant(t *testing.T) {
	a, b := newKey(t, apikey.AuthAES, 1), newKey(t, apikey.AuthAES, 2)
	tenants := []Tenant{{Keys: []apikey.Key{a}, MaxRate: 2}, {Keys: []apikey.Key{b}}}
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), tenants...)
	clients := []*client{newClient(t, a), newClient(t, b)}
	answered := func(i int) (n int) {
		for range 5 {
			clients[i].next()
			clients[i].header.Timestamp = clock.Now().Wall
			if w.ask(clients[i].request(&wire.Request{Layout: wire.Layout2, DedupTTL: 60})) != nil {
				n++
			}
		}
		return n
	}
	if x, y := answered(0), answered(1); x != 2 || y != 5 {
		t.Errorf("answered %d of 5 at max_rate 2 and %d of 5 without; want 2 and 5", x, y)
	}
	if _, err := w.registry.set(clock.Now(), tenants); err != nil {
		t.Fatal(err)
	}
	if x := answered(0); x != 0 {
		t.Errorf("a reload lets %d more in", x)
	}
	clock.advance(500 * time.Millisecond)
	if x := answered(0); x != 1 {
		t.Errorf("half a second later %d more, want 1", x)
	}
	// What is not authentic takes nothing from the tenant.
	clock.advance(time.Second)
	forged := clients[0].request(checkout(1))
	forged[len(forged)-1] ^= 1
	for range 10 {
		w.ask(forged)
	}
	if x := answered(0); x != 2 {
		t.Errorf("after forged datagrams %d are answered, want 2", x)
	}
	if n := w.registry.tenants()[1].state.counts.dropped[dropMaxRate].Load(); n != 15 {
		t.Errorf("%d dropped as max_rate, want 15", n)
	}
}

func TestMaxRateIsChecked(t *testing.T) {
	for _, rate := range []int{-1, maxMaxRate + 1} {
		_, err := New(Config{Listen: []string{"127.0.0.1:0"}, Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}, MaxRate: rate}}})
		if err == nil {
			t.Errorf("%d is taken", rate)
		}
	}
}
