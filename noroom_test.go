package weir_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/server"
)

// A server that has no room for another bucket says something else than one whose
// bucket is full, and the client can tell.
func TestNoRoom(t *testing.T) {
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL, quotas.RateBuckets = 1<<30, 4
	key, err := apikey.NewLegacy(apikey.AuthAES, 7, quotas, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, key, server.Config{})
	client, err := weir.New(weir.Config{Key: key, Policy: patience(), Servers: []discovery.Server{{ID: s.ID(), Addrs: s.Addrs()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := func(resources ...weir.Resource) weir.Decision {
		t.Helper()
		d, err := client.Acquire(t.Context(), weir.Request{Resources: resources})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	bucket := func(i int) weir.RateBucket { return weir.Bucket(fmt.Sprint("bucket ", i), 3, time.Hour) }
	for i := range 4 {
		if d := ask(bucket(i).Take(2)); !d.Granted() || d.NoRoom() {
			t.Fatalf("bucket %d: %v", i, d)
		}
	}
	// Another bucket: the tokens would fit, the bucket does not.
	d := ask(bucket(0).Take(1), bucket(4).Take(3))
	r := d.Resources()
	if d.Granted() || !d.NoRoom() || !r[0].Covered() || r[0].NoRoom() || r[1].Deficit != 3 || r[1].ActualRate != 0 || !r[1].NoRoom() {
		t.Errorf("a fifth bucket: %v", d)
	}
	// A bucket that is there and full.
	for tokens, deficit := range map[int]uint16{2: 1, 3: 2, 4: 3, 100: 99} {
		d := ask(bucket(1).Take(tokens))
		if r := d.Resources()[0]; d.Granted() || d.NoRoom() || r.NoRoom() || r.Deficit != deficit || r.ActualRate != 2 {
			t.Errorf("%d tokens of a full bucket: %v", tokens, d)
		}
	}
	// What is taken twice in one request adds up: each half would fit.
	d = ask(bucket(2).Take(1), bucket(2).Take(1))
	if r := d.Resources(); d.Granted() || d.NoRoom() || !r[0].Covered() || r[1].Deficit != 1 || r[1].NoRoom() {
		t.Errorf("one token twice: %v", d)
	}
	// Both at once, and a look, which needs no room.
	d = ask(bucket(3).Take(3), bucket(5).Take(1), bucket(6).Take(0))
	if r := d.Resources(); d.Granted() || !d.NoRoom() || r[0].NoRoom() || !r[1].NoRoom() || !r[2].Covered() || r[2].NoRoom() {
		t.Errorf("full, and no room: %v", d)
	}
	if d := ask(bucket(0).Take(1)); !d.Granted() {
		t.Errorf("the buckets that are there serve on: %v", d)
	}
	// Wait keeps asking for room too, and says at the end what lacked.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if d, err := client.Wait(ctx, weir.Request{Resources: []weir.Resource{bucket(7).Take(1)}}); err == nil || d.Granted() {
		t.Errorf("%v, %v", d, err)
	}
}
