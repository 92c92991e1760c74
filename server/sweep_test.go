package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// A tenant that has stopped asking is freed of what has expired.
func TestIdleTenantIsSwept(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{key}}}, Clock: clock})
	c := dial(t, key, s.Addrs()[0])
	const buckets = 5 * sweepSteps
	for i := range buckets {
		r := checkout(1)
		r.Resources[0].Bucket = ident.Bucket(fmt.Sprint(i), r.Resources[0].Window, r.Resources[0].Rate)
		c.next()
		c.header.Timestamp = testTime + 1
		answer, _, err := c.exchange(c.request(r))
		if err != nil {
			t.Fatal(err)
		}
		if r := c.open(answer, wire.Layout2); !r.granted() {
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
