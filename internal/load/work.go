package load

import (
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
