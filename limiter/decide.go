package limiter

import (
	"slices"

	"github.com/weirhq/weir/wire"
)

// demand is what a request wants of one bucket, in all its blocks together.
type demand struct {
	key    bucketKey
	hash   uint64
	bucket uint32 // 0: there is none yet
	live   uint32 // tokens consumed in the window
	asked  uint64 // tokens of the blocks so far
	noRoom bool   // there is none, and no room for it
}

// decide evaluates all guards and resources in order, and then consumes all tokens or none. It puts
// the answer, which is empty, together.
func (e *Engine) decide(v *wire.RequestView, ans *wire.Answer) (granted bool) {
	granted = true
	e.paced = e.paced[:0]
	for i := range v.Guards() {
		g := v.Guard(i)
		key := guardKey(&g, v.Layout)
		latency, paced := e.trackers.judge(&key, g.Threshold, e.now)
		granted = granted && latency < g.Threshold
		ans.Latencies = append(ans.Latencies, latency)
		if paced != 0 && !slices.Contains(e.paced, paced) {
			e.paced = append(e.paced, paced)
		}
	}
	e.demands, e.blocks = e.demands[:0], e.blocks[:0]
	e.buckets.makeRoom(v.Resources(), e.now)
	made := 0 // buckets that a grant would make
	for i := range v.Resources() {
		r := v.Resource(i)
		n := e.demand(&r)
		d := &e.demands[n]
		deficit := d.deficit(uint32(r.Tokens))
		if deficit == 0 && r.Tokens > 0 && d.asked == 0 && d.bucket == 0 {
			made++
			d.noRoom = !e.buckets.hasRoom(made, d.hash)
		}
		if d.noRoom && r.Tokens > 0 {
			deficit = uint32(r.Tokens)
			e.refused++
		}
		d.asked += uint64(r.Tokens)
		granted = granted && deficit == 0
		ans.Deficits = append(ans.Deficits, uint16(deficit))
		e.blocks = append(e.blocks, n)
	}
	if granted {
		e.consume()
	}
	e.trackers.settleUp(e.paced, granted, e.now)
	for _, n := range e.blocks {
		ans.Rates = append(ans.Rates, e.demands[n].live)
	}
	return granted
}

// demand returns the number of the demand on a block's bucket; a new one asks for nothing yet.
func (e *Engine) demand(r *wire.Resource) int {
	key := bucketKey{r.Bucket, r.Window, r.Rate}
	hash := key.hash(e.buckets.hash)
	for i := range e.demands {
		if d := &e.demands[i]; d.hash == hash && d.key == key {
			return i
		}
	}
	bucket := e.buckets.find(&key, hash)
	e.demands = append(e.demands, demand{
		key: key, hash: hash, bucket: bucket, live: e.buckets.live(bucket, e.now),
	})
	return len(e.demands) - 1
}

// deficit returns how many of a block's tokens the bucket lacks.
func (d *demand) deficit(tokens uint32) uint32 {
	if d.key.window == 0 {
		return tokens
	}
	want := uint64(d.live) + d.asked + uint64(tokens)
	if want <= uint64(d.key.rate) {
		return 0
	}
	return uint32(min(uint64(tokens), want-uint64(d.key.rate)))
}

// consume charges every bucket with all that is asked of it.
func (e *Engine) consume() {
	for i := range e.demands {
		d := &e.demands[i]
		if d.asked > 0 {
			d.live = e.buckets.consume(d.bucket, &d.key, d.hash, e.now, uint32(d.asked))
		}
	}
}
