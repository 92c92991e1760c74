package limiter

import (
	"encoding/binary"
	"sort"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// maxSamples is how many samples a tracker keeps at most, whatever its quota: what a key of format 1
// can name.
const maxSamples = 1 << 15

// trackerKey is what defines a latency tracker. The layout is part of it because layout 2 has no
// buffer size, which is not the same as one of 0.
type trackerKey struct {
	id         ident.ID
	ttl        uint32 // ms
	maxSamples uint32
	minSamples uint32
	bufferSize uint32
	layout     wire.Layout
}

// tracker is the record of a latency tracker: a ring of samples, the oldest first, in a slab.
type tracker struct {
	key    trackerKey
	tag    uint32
	slab   uint32
	sum    uint64 // of the samples' latencies
	oldest int64  // when the first sample came
	cached uint32 // the estimate, if by says so
	head   uint16 // where the first sample is in the ring
	count  uint16
	root   uint16 // of the order tree
	class  uint8
	by     uint8  // 1 + the estimator that cached is by; 0: none
	pacers uint32 // the first of its pacers
}

// trackers is a tenant's latency trackers. A tracker is there from a first report until its last
// sample is forgotten.
type trackers struct {
	pool      pool[tracker]
	index     table
	wheel     wheel
	mem       slabs[sample]
	hash      hasher
	ranks     uint64 // what the next rank is drawn from
	limit     int    // trackers at most
	samples   uint32 // of a tracker at most
	estimator Estimator

	pacers pool[pacer]
	paced  bool   // tripped guards pace
	probe  uint32 // ms between the probes that a pacer lets pass
	active int    // pacers that drain or pace
	trips  uint64
}

func guardKey(g *wire.Guard, l wire.Layout) trackerKey {
	return trackerKey{g.Tracker, g.TTL, g.MaxSamples, g.MinSamples, g.BufferSize, l}
}

func observationKey(o *wire.Observation, l wire.Layout) trackerKey {
	return trackerKey{o.Tracker, o.TTL, o.MaxSamples, o.MinSamples, o.BufferSize, l}
}

func (k *trackerKey) hash(h hasher) uint64 {
	var b [33]byte
	copy(b[:], k.id[:])
	binary.LittleEndian.PutUint32(b[16:], k.ttl)
	binary.LittleEndian.PutUint32(b[20:], k.maxSamples)
	binary.LittleEndian.PutUint32(b[24:], k.minSamples)
	binary.LittleEndian.PutUint32(b[28:], k.bufferSize)
	b[32] = byte(k.layout)
	return h.sum(b[:])
}

func (k *trackerKey) ttlNs() int64 { return int64(k.ttl) * nsPerMs }

// capacity returns how many samples a tracker with the key keeps.
func (t *trackers) capacity(k *trackerKey) int {
	n := min(t.samples, k.maxSamples)
	if k.layout == wire.Layout1 {
		n = min(n, k.bufferSize)
	}
	return int(n)
}

// find returns the tracker with a key, or 0.
func (t *trackers) find(key *trackerKey, hash uint64) uint32 {
	p := t.index.probe(tag(hash))
	for {
		i := p.next()
		if i == 0 || t.pool.at(i).key == *key {
			return i
		}
	}
}

// judge returns what a guard's block shows, which is below the threshold if the guard passes, and the
// pacer that is to know what becomes of the request; 0 if none is.
func (t *trackers) judge(key *trackerKey, threshold uint32, now int64) (latency, paced uint32) {
	i := t.find(key, key.hash(t.hash))
	if i == 0 {
		return 0, 0
	}
	r := t.pool.at(i)
	latency = t.estimate(r, now)
	if !t.paced || threshold == 0 {
		return latency, 0
	}
	if paced = t.pacer(r, threshold, now); paced == 0 {
		return latency, 0
	}
	return t.pace(r, t.pacers.at(paced), latency, now), paced
}

// estimate returns the statistic of a tracker's live samples; 0 if there are fewer than it asks for.
func (t *trackers) estimate(r *tracker, now int64) uint32 {
	t.expire(r, now, maxSamples)
	if r.count == 0 || uint32(r.count) < r.key.minSamples {
		return 0
	}
	if r.by != 1+uint8(t.estimator) {
		r.by = 1 + uint8(t.estimator)
		r.cached = t.statistic(r)
	}
	return r.cached
}

// statistic computes the estimate from at least one sample.
func (t *trackers) statistic(r *tracker) uint32 {
	if t.estimator == Mean {
		return uint32(r.sum / uint64(r.count))
	}
	tree := orderTree{t.mem.at(r.slab, r.class), r.root}
	return tree.kth(t.estimator.rank(int(r.count)))
}

// observe logs a latency in a tracker, which it makes if there is none. It returns false if there is
// no room for the tracker. Samples that nobody could ever see make none.
func (t *trackers) observe(key *trackerKey, now int64, latency uint32) bool {
	capacity := t.capacity(key)
	if capacity == 0 || key.ttl == 0 {
		return true
	}
	hash := key.hash(t.hash)
	i := t.find(key, hash)
	if i == 0 {
		if i = t.make(key, hash, now); i == 0 {
			return false
		}
	}
	r := t.pool.at(i)
	t.expire(r, now, maxSamples)
	// Two go for one that comes, so that a lowered quota drains.
	for drop := 2; drop > 0 && int(r.count) >= capacity; drop-- {
		t.forget(r)
	}
	if int(r.count) == slabItems(r.class) && !t.move(r, r.class+1) {
		t.forget(r)
	}
	t.insert(r, now, latency)
	t.report(r, now, latency)
	return true
}

// make returns a new tracker without samples, or 0 if there is no room for it.
func (t *trackers) make(key *trackerKey, hash uint64, now int64) uint32 {
	for try := 0; t.pool.live >= t.limit; try++ {
		if try == lastResort || !t.reclaim(now, tick(now)+1) {
			return 0
		}
	}
	if !t.index.hasRoom(tag(hash)) {
		return 0
	}
	slab, ok := t.mem.take(0)
	if !ok {
		return 0
	}
	i := t.pool.take()
	*t.pool.at(i) = tracker{key: *key, tag: tag(hash), slab: slab}
	t.index.add(tag(hash), i)
	t.wheel.rest(tick(now))
	t.wheel.add(t.pool.links, i, tick(now+key.ttlNs()))
	return i
}

// insert adds a sample. The ring has a place for it.
func (t *trackers) insert(r *tracker, now int64, latency uint32) {
	ring := t.mem.at(r.slab, r.class)
	at := (int(r.head) + int(r.count)) & (len(ring) - 1)
	// A linear congruential generator; its high bits are the rank.
	t.ranks = t.ranks*0x5851f42d4c957f2d + 0x14057b7ef767814f
	ring[at] = sample{at: now, latency: latency, rank: uint32(t.ranks >> 32)}
	tree := orderTree{ring, r.root}
	tree.insert(uint16(at + 1))
	r.root = tree.root
	if r.count == 0 {
		r.oldest = now
	}
	r.count++
	r.sum += uint64(latency)
	r.by = 0
}

// expireEach is how many samples are taken out of a tree one by one before it is cheaper to make the
// tree anew.
const expireEach = 64

// expire forgets samples whose time is over, at most so many. A few cost O(log n) each; of very many,
// which a tracker can have when nobody has asked for it for long, all together cost O(n), so that no
// call is long. While calls come, the wheel takes them a few at a time.
func (t *trackers) expire(r *tracker, now int64, most int) {
	ttl := r.key.ttlNs()
	if r.count == 0 || now-r.oldest < ttl {
		return
	}
	ring := t.mem.at(r.slab, r.class)
	place := func(k int) int { return (int(r.head) + k) & (len(ring) - 1) }
	if now-ring[place(int(r.count)-1)].at >= ttl {
		t.forgetAll(r)
		return
	}
	if most > expireEach && int(r.count) > expireEach && now-ring[place(expireEach)].at >= ttl {
		over := sort.Search(int(r.count), func(k int) bool { return now-ring[place(k)].at < ttl })
		t.forgetMany(r, over)
		return
	}
	for ; most > 0 && now-r.oldest >= ttl; most-- {
		t.forget(r)
	}
}

// forgetAll drops all samples.
func (t *trackers) forgetAll(r *tracker) { r.head, r.count, r.root, r.sum, r.by = 0, 0, 0, 0, 0 }

// forgetMany drops so many of the oldest samples, fewer than there are, in O(n).
func (t *trackers) forgetMany(r *tracker, over int) {
	ring := t.mem.at(r.slab, r.class)
	tree := orderTree{ring, r.root}
	r.head = uint16((int(r.head) + over) & (len(ring) - 1))
	left := int(r.count) - over
	r.oldest = ring[r.head].at
	if left < int(r.count)/8 {
		tree.root = 0
		for k := range left {
			tree.insert(uint16((int(r.head)+k)&(len(ring)-1)) + 1)
		}
	} else {
		tree.rebuild(r.oldest)
	}
	r.root, r.count, r.by = tree.root, uint16(left), 0
	r.sum = 0
	for k := range left {
		r.sum += uint64(ring[(int(r.head)+k)&(len(ring)-1)].latency)
	}
}

// forget drops the oldest of at least one sample.
func (t *trackers) forget(r *tracker) {
	ring := t.mem.at(r.slab, r.class)
	tree := orderTree{ring, r.root}
	tree.remove(r.head + 1)
	r.root = tree.root
	r.sum -= uint64(ring[r.head].latency)
	r.head = uint16((int(r.head) + 1) & (len(ring) - 1))
	r.count--
	r.by = 0
	if r.count > 0 {
		r.oldest = ring[r.head].at
	}
}

// move copies a tracker's samples into a slab of another class, the first to its front.
func (t *trackers) move(r *tracker, class uint8) bool {
	slab, ok := t.mem.take(class)
	if !ok {
		return false
	}
	from, to := t.mem.at(r.slab, r.class), t.mem.at(slab, class)
	mask := len(from) - 1
	place := func(i uint16) uint16 {
		if i == 0 {
			return 0
		}
		return uint16((int(i)-1-int(r.head))&mask) + 1
	}
	for k := range int(r.count) {
		s := from[(int(r.head)+k)&mask]
		s.left, s.right, s.parent = place(s.left), place(s.right), place(s.parent)
		to[k] = s
	}
	r.root = place(r.root)
	t.mem.give(r.slab, r.class)
	r.slab, r.class, r.head = slab, class, 0
	return true
}

// reclaim looks at one tracker that the wheel passes before a tick: samples whose time is over go, a
// few at a time, and with the last of them the tracker. It returns false if there is none.
func (t *trackers) reclaim(now int64, before uint64) bool {
	i, ok := t.wheel.pop(t.pool.links, before)
	if !ok {
		return false
	}
	r := t.pool.at(i)
	t.expire(r, now, samplesAStep)
	if r.count > 0 {
		if r.class > 0 && int(r.count)*4 <= slabItems(r.class) {
			t.move(r, slabClass(2*int(r.count)))
		}
		t.wheel.rest(tick(now))
		t.wheel.add(t.pool.links, i, tick(r.oldest+r.key.ttlNs()))
		return true
	}
	if !t.release(r, now-pacerIdle) {
		t.wheel.rest(tick(now))
		t.wheel.add(t.pool.links, i, tick(now+pacerIdle/8))
		return true
	}
	t.mem.give(r.slab, r.class)
	t.index.remove(r.tag, i)
	t.pool.give(i)
	return true
}
