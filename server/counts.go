package server

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/limiter"
)

// serverCounts count what is not any one tenant's.
type serverCounts struct {
	dropped     [reasonCount]atomic.Uint64
	readErrors  atomic.Uint64
	writeErrors atomic.Uint64
	latency     latencyHistogram

	reloads      atomic.Uint64 // that the tenants file was put in force, the start included
	reloadErrors atomic.Uint64
	reloadBroken atomic.Bool // the last attempt failed
}

// verdictCount is one more than the last of the engine's verdicts.
const verdictCount = int(limiter.DropFloor) + 1

// tenantCounts count what happened to one key ID's datagrams.
type tenantCounts struct {
	dropped      [reasonCount]atomic.Uint64
	verdicts     [verdictCount]atomic.Uint64
	oldKeyUses   atomic.Uint64
	oldKeyLastMs atomic.Uint64 // Unix ms
}

// oldKey notes that a key other than the tenant's newest opened a datagram.
func (c *tenantCounts) oldKey(now limiter.Time) {
	c.oldKeyUses.Add(1)
	c.oldKeyLastMs.Store(now.Wall)
}

// latencyBounds are the upper bounds of the histogram's buckets, in ascending order.
var latencyBounds = [...]time.Duration{
	time.Microsecond, 2 * time.Microsecond, 5 * time.Microsecond,
	10 * time.Microsecond, 20 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
}

// latencyHistogram is how long answers took. It is safe for concurrent use.
type latencyHistogram struct {
	buckets [len(latencyBounds) + 1]atomic.Uint64 // the last has no bound
	sum     atomic.Int64                          // ns
}

// observe adds n answers that took d each.
func (h *latencyHistogram) observe(d time.Duration, n uint64) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	h.buckets[i].Add(n)
	h.sum.Add(int64(d) * int64(n))
}

// cumulative returns the histogram as Prometheus has it: how many observations there
// were in all, their sum in seconds, and how many were at most each bound in seconds.
func (h *latencyHistogram) cumulative() (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(latencyBounds))
	for i, bound := range latencyBounds {
		count += h.buckets[i].Load()
		buckets[bound.Seconds()] = count
	}
	count += h.buckets[len(latencyBounds)].Load()
	return count, time.Duration(h.sum.Load()).Seconds(), buckets
}
