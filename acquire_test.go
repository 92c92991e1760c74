package weir

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

var (
	checkout  = Bucket("checkout", 100, time.Second)
	inventory = Tracker("inventory", TrackerOptions{TTL: 10 * time.Second, MaxSamples: 100, MinSamples: 5})
)

func oneToken() Request { return Request{Resources: []Resource{checkout.Take(1)}} }

func TestAcquireGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.client()
		d, err := c.Acquire(context.Background(), oneToken())
		if err != nil || !d.Granted() || d.Server() != 1000 || d.Round() != 0 || d.Elapsed() != 0 {
			t.Fatalf("%v, %v", d, err)
		}
	})
}
