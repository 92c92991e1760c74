package limiter

import (
	"encoding/binary"

	"github.com/weirhq/weir/ident"
)

// nsPerMs is the number of nanoseconds in a millisecond.
const nsPerMs = 1_000_000

// tickBits is log2 of a tick of the wheels in monotonic time, in nanoseconds: about a millisecond,
// the shortest window there is.
const tickBits = 20

func tick(now int64) uint64 { return uint64(now) >> tickBits }

// bucketKey is what defines a bucket. Window and rate are part of it, so that a wrong ID cannot
// corrupt the state of another definition.
type bucketKey struct {
	id     ident.ID
	window uint32 // ms
	rate   uint32
}

// bucket is the record of a bucket: 64 bytes, one line of a cache.
type bucket struct {
	key bucketKey
	groups
}

// buckets is a tenant's buckets. A bucket is there from a first consumption until the wheel passes
// the end of its last one.
type buckets struct {
	pool  pool[bucket]
	index table
	wheel wheel
	mem   slabs[group]
	hash  hasher
	limit int // buckets at most
}

func (k *bucketKey) hash(h hasher) uint64 {
	return h.sum3(binary.LittleEndian.Uint64(k.id[:]), binary.LittleEndian.Uint64(k.id[8:]),
		uint64(k.window)|uint64(k.rate)<<32)
}

func (k *bucketKey) windowNs() int64 { return int64(k.window) * nsPerMs }

// find returns the bucket with a key, or 0.
func (b *buckets) find(key *bucketKey, hash uint64) uint32 {
	p := b.index.probe(tag(hash))
	for {
		i := p.next()
		if i == 0 || b.pool.at(i).key == *key {
			return i
		}
	}
}

// live returns the tokens of a bucket's live groups; 0 if the bucket, i, is 0.
func (b *buckets) live(i uint32, now int64) uint32 {
	if i == 0 {
		return 0
	}
	r := b.pool.at(i)
	r.expire(&b.mem, now, r.key.windowNs())
	return r.live
}

// makeRoom looks for dead buckets that the wheel has not passed yet, until there is room for n more or
// it has looked at enough. Indices found before may be gone after it.
func (b *buckets) makeRoom(n int, now int64) {
	for try := 0; try < lastResort && b.pool.live+n > b.limit; try++ {
		if !b.reclaim(now, tick(now)+1) {
			return
		}
	}
}

// hasRoom reports whether there is room for n more buckets, the last with a hash.
func (b *buckets) hasRoom(n int, hash uint64) bool {
	return b.pool.live+n <= b.limit && b.index.hasRoom(tag(hash))
}

// consume logs tokens, more than 0, in a bucket, which it makes if it, i, is 0. It returns the tokens
// of the live groups.
func (b *buckets) consume(i uint32, key *bucketKey, hash uint64, now int64, tokens uint32) uint32 {
	if i == 0 {
		i = b.pool.take()
		*b.pool.at(i) = bucket{key: *key}
		b.index.add(tag(hash), i)
		b.wheel.rest(tick(now))
		b.wheel.add(b.pool.links, i, tick(now+key.windowNs()))
	}
	r := b.pool.at(i)
	r.add(&b.mem, now, key.windowNs(), tokens)
	return r.live
}

// reclaim looks at one bucket that the wheel passes before a tick: a dead one is taken out, another
// waits on. It returns false if there is none.
func (b *buckets) reclaim(now int64, before uint64) bool {
	i, ok := b.wheel.pop(b.pool.links, before)
	if !ok {
		return false
	}
	r := b.pool.at(i)
	r.expire(&b.mem, now, r.key.windowNs())
	if r.count > 0 {
		r.shrink(&b.mem)
		b.wheel.rest(tick(now))
		b.wheel.add(b.pool.links, i, tick(r.last(&b.mem).end+r.key.windowNs()))
		return true
	}
	r.release(&b.mem)
	b.index.remove(tag(r.key.hash(b.hash)), i)
	b.pool.give(i)
	return true
}
