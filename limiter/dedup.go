package limiter

import (
	"encoding/binary"
	"math"

	"github.com/weirhq/weir/wire"
)

// identityKey is what makes a datagram the one it is, within its tenant.
type identityKey struct {
	unique wire.UniqueID
	kind   wire.Kind
}

// identity is what is remembered of a datagram that was executed.
type identity struct {
	key   identityKey
	tag   uint32
	spent uint64 // ms: timestamp + dedup TTL. A skew after it, no copy is fresh any more
	until int64  // ns: repeats are answered before it; 0 for reports
	print uint64 // the PDU's fingerprint
	reply uint64 // where the answer is
}

// dedup remembers what was executed, so that nothing is executed twice: an identity that is unknown
// and not newer than the floor may be one that was forgotten, and is refused.
type dedup struct {
	pool     pool[identity]
	index    table
	calendar calendar // of the wall clock: when identities are spent
	hash     hasher
	floor    uint64 // ms
	latest   uint64 // ms: when the last of all that were remembered is spent
	limit    int    // identities at most
	degraded uint64 // identities that were forgotten before their time
}

func (k *identityKey) hash(h hasher) uint64 {
	return h.sum3(binary.LittleEndian.Uint64(k.unique[:]), binary.LittleEndian.Uint64(k.unique[8:]), uint64(k.kind))
}

// find returns the identity with a key, or 0.
func (d *dedup) find(key *identityKey, hash uint64) uint32 {
	p := d.index.probe(tag(hash))
	for {
		i := p.next()
		if i == 0 || d.pool.at(i).key == *key {
			return i
		}
	}
}

// remember enters an identity that is not in the table. If there are then too many, the one that is
// spent first goes, be it the new one: the floor rises no more than it must. fresh is the oldest
// timestamp that is not stale.
func (d *dedup) remember(id *identity, hash, fresh uint64) {
	id.tag = tag(hash)
	d.latest = max(d.latest, id.spent)
	i := d.pool.take()
	*d.pool.at(i) = *id
	d.index.add(id.tag, i)
	d.calendar.add(d.pool.links, i, id.spent, fresh)
	// Two go for one that comes, so that a lowered bound drains.
	for drop := 2; drop > 0 && d.pool.live > d.limit; drop-- {
		d.evict(fresh)
	}
}

// prolong makes an identity outlive a further copy of its datagram: clients may seal each send with
// a timestamp of its own.
func (d *dedup) prolong(i uint32, spent uint64) {
	id := d.pool.at(i)
	d.latest = max(d.latest, spent)
	id.spent = max(id.spent, spent) // the calendar finds out when it comes by
}

// evict forgets the identity that is spent first. Where very many of the first were prolonged, one of
// those.
func (d *dedup) evict(fresh uint64) {
	for try := 0; ; try++ {
		i, ok := d.calendar.pop(d.pool.links, math.MaxUint64)
		if !ok {
			return
		}
		if spent := d.pool.at(i).spent; !d.calendar.due(spent) && try < prolonged {
			d.calendar.add(d.pool.links, i, spent, fresh)
			continue
		}
		if d.pool.at(i).spent >= fresh {
			d.degraded++
		}
		d.forget(i)
		return
	}
}

// reclaim looks at one identity that was to be spent before a time, the oldest timestamp that is
// still fresh; it goes if it is. It returns false if there is none.
func (d *dedup) reclaim(fresh uint64) bool {
	i, ok := d.calendar.pop(d.pool.links, fresh)
	if !ok {
		return false
	}
	if spent := d.pool.at(i).spent; spent >= fresh {
		d.calendar.add(d.pool.links, i, spent, fresh)
		return true
	}
	d.forget(i)
	return true
}

// forget takes an identity out. From then on the floor stands for it.
func (d *dedup) forget(i uint32) {
	id := d.pool.at(i)
	d.floor = max(d.floor, id.spent)
	d.index.remove(id.tag, i)
	d.pool.give(i)
}
