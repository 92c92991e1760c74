package server

import (
	"fmt"
	"testing"
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
