package limiter

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/wire"
)

// TestRank holds the rank of every percentile against its definition, for every number of samples
// that a tracker can have: the first that at least so many percent of them do not exceed.
func TestRank(t *testing.T) {
	for e, percent := range map[Estimator]int{P50: 50, Min: 0, P90: 90, P99: 99} {
		for n := 1; n <= MaxSamples; n++ {
			k := e.rank(n)
			if k < 1 || k > n || 100*k < percent*n || k > 1 && 100*(k-1) >= percent*n {
				t.Fatalf("%v of %d samples has rank %d", e, n, k)
			}
		}
	}
}

// TestEstimatorsOfEverySize fills trackers of every kind of size beyond what they keep, and lets their
// samples expire: all estimates are those of a sort.
func TestEstimatorsOfEverySize(t *testing.T) {
	for _, size := range []uint32{1, 2, 3, 4, 5, 9, 10, 11, 99, 100, 101, 1000, 4096, MaxSamples - 1, MaxSamples} {
		rng := rand.New(rand.NewPCG(uint64(size), 6))
		c, err := Config{LatencyServices: 1, LatencyBufferSize: size}.complete()
		if err != nil {
			t.Fatal(err)
		}
		tr := &trackers{limit: 1, samples: size}
		tr.mem.limit = c.sampleLimit()
		key := &trackerKey{ttl: 1000, maxSamples: math.MaxUint32, layout: wire.Layout2}
		plain := plainTracker{ttl: key.ttlNs()}
		compare := func(now int64) {
			t.Helper()
			plain.expire(now)
			// The estimator of the last time first: what it remembers must be of now.
			if got, want := tr.estimateOf(key, now), statisticOf(tr.estimator, plain.latencies); got != want {
				t.Fatalf("%d samples of at most %d: %v is %d, want %d", len(plain.latencies), size, tr.estimator, got, want)
			}
			for e := range estimators {
				tr.estimator = e // as a reload does
				if got, want := tr.estimateOf(key, now), statisticOf(e, plain.latencies); got != want {
					t.Fatalf("%d samples of at most %d: %v is %d, want %d", len(plain.latencies), size, e, got, want)
				}
			}
		}
		gap := key.ttlNs() / int64(size) / 2
		now, n := int64(0), int(2*size)
		for i := range n {
			now += rng.Int64N(2*gap + 1)
			latency := rng.Uint32() >> (rng.IntN(4) * 8) // up to the largest there is: sums need 64 bits
			tr.observe(key, now, latency)
			plain.observe(now, latency, int(size))
			if i < 12 || i%max(1, n/5) == 0 || i > n-3 {
				compare(now)
			}
		}
		for range 7 {
			now += key.ttlNs() / 6
			compare(now)
		}
		if len(plain.times) > 0 {
			t.Fatalf("size %d: %d samples are left", size, len(plain.times))
		}
	}
}
