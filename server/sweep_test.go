package server

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
)

// A tenant that has stopped asking is freed of what has expired.
func TestIdleTenantIsSwept(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{key}}}, Clock: clock})
	c := dial(t, key, s.Addrs()[0])
	c.at = testTime
	const buckets = 5 * sweepSteps
	for i := range buckets {
		r := checkout(1)
		r.Resources[0].Bucket = ident.Bucket(fmt.Sprint(i), r.Resources[0].Window, r.Resources[0].Rate)
		if r := c.acquire(r); !r.granted() {
			t.Fatal("a bucket is full")
		}
	}
	state := s.registry.tenants()[7].state
	if st := state.stats(); st.Buckets != buckets || st.Identities != buckets {
		t.Fatalf("not full: %+v", st)
	}
	clock.advance(time.Minute)
	eventually(t, "nothing is left", func() bool {
		st := state.stats()
		return st.Buckets+st.Identities+st.Answers == 0
	})
}

// Taking back a lot leaves the processor to others in between, and is over all the same.
func TestSweepPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := newKey(t, apikey.AuthAES, 7)
		clock := newFakeClock()
		w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}})
		c := newClient(t, key)
		const buckets = 5 * sweepTurns * sweepSteps
		for i := range buckets {
			r := checkout(1)
			r.Resources[0].Bucket = ident.Bucket(fmt.Sprint(i), r.Resources[0].Window, r.Resources[0].Rate)
			c.next()
			if w.ask(c.request(r)) == nil {
				t.Fatal("no answer")
			}
			if i%1000 == 0 { // identities are for so many only
				clock.advance(400 * time.Millisecond)
				c.header.Timestamp += 400
			}
		}
		state := w.registry.tenants()[7].state
		before := state.stats().Buckets
		clock.advance(time.Hour)
		ended, end := context.WithCancel(t.Context())
		end()
		if state.sweep(ended, clock) {
			t.Error("a sweep goes on after the end")
		}
		if left := state.stats().Buckets; left == 0 || left == before {
			t.Errorf("%d of %d buckets are left after one turn", left, before)
		}
		start := time.Now()
		if !state.sweep(t.Context(), clock) {
			t.Error("a sweep says that it was ended")
		}
		if left, took := state.stats().Buckets, time.Since(start); left != 0 || took < time.Duration(before/sweepTurns/sweepSteps-2)*sweepPause {
			t.Errorf("%d of %d buckets are left, after pauses of %v", left, before, took)
		}
	})
}

// Many tenants are swept with pauses, too, although each has little.
func TestSweepPausesBetweenTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tenants []Tenant
		for i := range uint64(3 * sweepTenants) {
			tenants = append(tenants, Tenant{Keys: []apikey.Key{newKey(t, apikey.AuthAES, i+1)}, Name: fmt.Sprint(i)})
		}
		clock := newFakeClock()
		w := newWorker(t, clock, workerRules(), tenants...)
		start := time.Now()
		if !w.registry.sweepAll(t.Context(), clock) {
			t.Error("a sweep says that it was ended")
		}
		if took := time.Since(start); took != 3*sweepPause {
			t.Errorf("%v of pauses, want %v", took, 3*sweepPause)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if w.registry.sweepAll(ended, clock) {
			t.Error("a sweep goes on after the end")
		}
	})
}
