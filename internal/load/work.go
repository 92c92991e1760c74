package load

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// Work is what each request asks for.
type Work struct {
	Layout    wire.Layout // 2
	Buckets   int         // how many different ones there are for each key: 1, at most 10^7, of all keys together
	Zipf      float64     // the exponent by which the first are asked for more than the last; 0 is all alike, at most 10
	Resources int         // a request, each in another bucket as long as there are enough: 1
	Guards    int         // a request, each with a tracker of its own
	Reports   float64     // latency reports a request, for the guards' trackers: at most 100
	Tokens    uint16      // a resource: 1
	Limit     uint32      // tokens in a window of each bucket: 10^9, so that every request is granted
	Window    uint32      // ms: 1000
}

func (w *Work) fill() {
	const limit, window = 1_000_000_000, 1000
	w.Layout = cmp.Or(w.Layout, wire.Layout2)
	w.Buckets = cmp.Or(w.Buckets, 1)
	w.Resources = cmp.Or(w.Resources, 1)
	w.Tokens = cmp.Or(w.Tokens, 1)
	w.Limit = cmp.Or(w.Limit, limit)
	w.Window = cmp.Or(w.Window, window)
}

// check says what is wrong with the work, for the keys that are to ask for it.
func (w *Work) check(keys []apikey.Key) error {
	switch {
	case w.Layout != wire.Layout1 && w.Layout != wire.Layout2:
		return wrongField("Layout", "there is no layout %d", w.Layout)
	case w.Buckets < 1 || w.Buckets > MaxBuckets/len(keys):
		return wrongField("Buckets", "%d of each key are not from 1 to %d, as all keys have at most %d together", w.Buckets, MaxBuckets/len(keys), MaxBuckets)
	case w.Zipf < 0 || w.Zipf > MaxZipf || math.IsNaN(w.Zipf):
		return wrongField("Zipf", "an exponent of %v is not from 0 to %v", w.Zipf, MaxZipf)
	case w.Resources < 1:
		return wrongField("Resources", "%d are not at least 1", w.Resources)
	case w.Guards < 0:
		return wrongField("Guards", "%d are not at least 0", w.Guards)
	case w.Reports < 0 || w.Reports > MaxReports || math.IsNaN(w.Reports):
		return wrongField("Reports", "%v a request are not from 0 to %v", w.Reports, MaxReports)
	case w.Reports > 0 && w.Guards == 0:
		return wrongField("Reports", "they are for the trackers of guards, and there are none")
	}
	for _, k := range keys {
		if err := w.suits(k); err != nil {
			return err
		}
	}
	return nil
}

// suits says what a key, or the room in a datagram, does not let be asked for. Servers drop what is
// beyond most quotas in silence.
func (w *Work) suits(k apikey.Key) error {
	if k.IsZero() {
		return wrongField("Keys", "one is missing; read it with apikey.Parse")
	}
	q := k.Quotas()
	size := func(resources int) int { return wire.RequestSize(k.Auth(), w.Layout, w.Guards, resources, 0) }
	const room = wire.MaxDatagram
	switch {
	case size(0) > room:
		return wrongField("Guards", "%d do not fit into the %d bytes of a datagram, in %v mode", w.Guards, room, k.Auth())
	case size(w.Resources) > room:
		return wrongField("Resources", "%d, with %d guards, do not fit into the %d bytes of a datagram, in %v mode", w.Resources, w.Guards, room, k.Auth())
	case w.Reports > 0 && w.Guards > wire.MaxObservations(k.Auth(), w.Layout):
		return wrongField("Guards", "a report has room for %d, not %d", wire.MaxObservations(k.Auth(), w.Layout), w.Guards)
	case q.DedupTTL == 0:
		return wrongField("Keys", "the quota of %v lets no request be remembered, so servers drop all", k)
	case w.Window > q.RateWindow:
		return wrongField("Window", "%d ms are more than the %d ms that the quota of %v allows, so servers drop all", w.Window, q.RateWindow, k)
	case w.Buckets > int(q.RateBuckets):
		return wrongField("Buckets", "%d are more than the %d that the quota of %v allows, so servers deny the rest", w.Buckets, q.RateBuckets, k)
	case w.Guards > int(q.LatencyServices):
		return wrongField("Guards", "%d trackers are more than the %d that the quota of %v allows", w.Guards, q.LatencyServices, k)
	case w.Guards > 0 && q.LatencyBufferSize == 0:
		return wrongField("Guards", "the quota of %v lets trackers keep no samples", k)
	}
	return nil
}

// tenant is one of those that ask.
type tenant struct {
	credential *wire.Credential
	ttl        uint32
	samples    uint32          // most that a tracker of it may keep
	granted    []atomic.Uint64 // tokens, by the bucket's number
}

func newTenant(cfg *Config, k apikey.Key) (*tenant, error) {
	const samples = 128
	t := &tenant{ttl: cfg.dedupTTL(k), samples: min(samples, k.Quotas().LatencyBufferSize), granted: make([]atomic.Uint64, cfg.Work.Buckets)}
	var err error
	t.credential, err = wire.NewCredential(k)
	return t, err
}

// bucketID is the ID of a bucket's number: spread like a hash, and the same in every run.
func bucketID(n uint32) (id ident.ID) {
	x := uint64(n) + 0x5745_4952_0000_0001
	for i := range id {
		if i%8 == 0 {
			x = (x ^ x>>31) * 0x9e37_79b9_7f4a_7c15
			x ^= x >> 29
		}
		id[i] = byte(x >> (i % 8 * 8))
	}
	return id
}

// picker draws the number of a bucket.
type picker struct {
	n     int
	until []float64 // sums of weights, nil if all are alike
}

func newPicker(n int, exponent float64) *picker {
	p := &picker{n: n}
	if exponent == 0 || n == 1 {
		return p
	}
	p.until = make([]float64, n)
	sum := 0.0
	for i := range p.until {
		sum += math.Pow(float64(i+1), -exponent)
		p.until[i] = sum
	}
	return p
}

func (p *picker) draw(r *rand.Rand) uint32 {
	switch {
	case p.n == 1:
		return 0
	case p.until == nil:
		return uint32(r.IntN(p.n))
	}
	return uint32(min(p.n-1, sort.SearchFloat64s(p.until, r.Float64()*p.until[p.n-1])))
}

// composer makes requests and reports, in space of its own.
type composer struct {
	picker  *picker
	req     wire.Request
	guards  []wire.Guard
	observe []wire.Observation
}

func newComposer(cfg *Config, t *tenant, p *picker) composer {
	const ttl, threshold = 60_000, math.MaxUint32
	w := cfg.Work
	c := composer{picker: p, guards: make([]wire.Guard, w.Guards), observe: make([]wire.Observation, w.Guards)}
	for i := range c.guards {
		name := fmt.Sprintf("weir-bench/%d", i)
		g := wire.Guard{TTL: ttl, MaxSamples: t.samples, MinSamples: 1, Threshold: threshold}
		if g.Tracker = ident.Tracker(name, ttl, g.MaxSamples, 1); w.Layout == wire.Layout1 {
			g.BufferSize = t.samples
			g.Tracker = ident.TrackerLayout1(name, ttl, g.MaxSamples, g.BufferSize, 1)
		}
		c.guards[i] = g
		c.observe[i] = wire.Observation{Tracker: g.Tracker, TTL: g.TTL, MaxSamples: g.MaxSamples, BufferSize: g.BufferSize, MinSamples: 1}
	}
	c.req = wire.Request{Layout: w.Layout, DedupTTL: t.ttl, Guards: c.guards, Resources: make([]wire.Resource, w.Resources)}
	for i := range c.req.Resources {
		c.req.Resources[i] = wire.Resource{Window: w.Window, Rate: w.Limit, Tokens: w.Tokens}
	}
	return c
}

// request draws the buckets of a request, each another if there are enough, and leaves their numbers.
func (c *composer) request(r *rand.Rand, numbers []uint32) *wire.Request {
	for i := range numbers {
		n := c.picker.draw(r)
		for len(numbers) <= c.picker.n && slices.Contains(numbers[:i], n) {
			n = uint32((int(n) + 1) % c.picker.n)
		}
		numbers[i] = n
		c.req.Resources[i].Bucket = bucketID(n)
	}
	return &c.req
}

// report draws a latency for each tracker.
func (c *composer) report(r *rand.Rand) []wire.Observation {
	const longest = 100 // ms
	for i := range c.observe {
		c.observe[i].Latency = 1 + r.Uint32N(longest)
	}
	return c.observe
}
