package limiter

import (
	"encoding/binary"
	"testing"

	"github.com/weirhq/weir/wire"
)

// collision returns two numbers whose tags are the same.
func collision(t *testing.T, tagOf func(n uint32) uint32) (a, b uint32) {
	t.Helper()
	seen := map[uint32]uint32{}
	for n := range uint32(1 << 20) {
		tag := tagOf(n)
		if other, ok := seen[tag]; ok {
			return other, n
		}
		seen[tag] = n
	}
	t.Fatal("no two tags are the same")
	return 0, 0
}

// TestTagsProveNothing asks for records of one tag: each is known by all of its key.
func TestTagsProveNothing(t *testing.T) {
	r := newRig(t, testConfig())

	bucket := func(n uint32) wire.Resource { return wire.Resource{Window: 1000, Rate: 1000 + n, Tokens: 7} }
	a, b := collision(t, func(n uint32) uint32 {
		key := bucketKey{window: 1000, rate: 1000 + n}
		return tag(key.hash(r.e.buckets.hash))
	})
	for k, n := range []uint32{a, b, a, b} {
		if r.ask(bucket(n)); r.ans.Rates[0] != uint32(7+k/2*7) {
			t.Errorf("bucket %d has %d tokens in round %d", n, r.ans.Rates[0], k/2)
		}
	}

	a, b = collision(t, func(n uint32) uint32 {
		key := trackerKey{ttl: 1000, maxSamples: 10 + n, layout: wire.Layout2}
		return tag(key.hash(r.e.trackers.hash))
	})
	for _, n := range []uint32{a, b} {
		r.report(wire.Observation{TTL: 1000, MaxSamples: 10 + n, Latency: 20 + n})
	}
	for _, n := range []uint32{a, b} {
		if got := r.guard(wire.Guard{TTL: 1000, MaxSamples: 10 + n}); got != 20+n {
			t.Errorf("tracker %d is at %d ms, want %d", n, got, 20+n)
		}
	}

	unique := func(n uint32) (u wire.UniqueID) {
		u[15] = 1 // unlike those of the rig
		binary.LittleEndian.PutUint32(u[:], n)
		return u
	}
	a, b = collision(t, func(n uint32) uint32 {
		key := identityKey{unique(n), wire.KindRequest}
		return tag(key.hash(r.e.dedup.hash))
	})
	for k, n := range []uint32{a, b, a, b} {
		want := []Verdict{Granted, RepeatGranted}[k/2]
		if v := r.send(wire.Header{UniqueID: unique(n), Timestamp: r.now.Wall}, wire.Request{}); v != want {
			t.Errorf("identity %d: %v, want %v", n, v, want)
		}
	}
}

// TestKindsApart: a request and a report of one unique ID are two identities, whatever their hashes.
func TestKindsApart(t *testing.T) {
	r := newRig(t, testConfig())
	d := &r.e.dedup
	const hash = 7 << 32
	request := identity{key: identityKey{wire.UniqueID{1}, wire.KindRequest}}
	d.remember(&request, hash, 0)
	if d.find(&request.key, hash) == 0 || d.find(&identityKey{wire.UniqueID{1}, wire.KindReport}, hash) != 0 {
		t.Error("a report is taken for a request")
	}
}
