package limiter

import (
	"math"
	"math/bits"
)

// maxGroups is how many groups a bucket has at most.
const maxGroups = 128

// group is a number of tokens that were consumed at about one time. All of them count as consumed
// at end, the time of the last, so that merging makes tokens expire late and never early.
type group struct {
	end    int64 // ns
	tokens uint32
	// reach is the time from the first token of the group before this one to this one's end, in
	// quanta of the bucket: what the two would span as one. The first group's means nothing.
	reach uint32
}

// never is the reach of a group with no group before it.
const never = math.MaxUint32

// groups is the log of one bucket: a ring of groups, the oldest first. One group lives in the
// bucket itself, more in a slab.
type groups struct {
	only group  // the group, while class is 0
	live uint32 // tokens of all groups together
	span uint32 // quanta that the last group spans
	// least is at most the smallest reach that counts. As long as the last group can take in one
	// more consumption without reaching further, no other two are nearer, and nothing is searched.
	least uint32
	slab  uint32
	head  uint8 // where the first group is in the ring
	count uint8
	class uint8 // 0: no slab; else the slab's class + 1
}

// quantum returns the length of a bucket's quantum as a shift of nanoseconds: so long that two windows are less than 1<<32 quanta.
func quantum(window int64) (shift uint) {
	return uint(max(0, bits.Len64(2*uint64(window))-32))
}

// quanta returns how many quanta lie between two times. Each is cut down by itself, so that
// distances add up exactly.
func quanta(from, to int64, shift uint) uint64 {
	return uint64(to)>>shift - uint64(from)>>shift
}

// ring returns the groups' memory; its length is a power of two.
func (g *groups) ring(mem *slabs[group]) []group {
	if g.class == 0 {
		return nil
	}
	return mem.at(g.slab, g.class-1)
}

// first returns the oldest of at least one group.
func (g *groups) first(mem *slabs[group]) *group {
	if g.class == 0 {
		return &g.only
	}
	return &g.ring(mem)[g.head]
}

// last returns the newest of at least one group.
func (g *groups) last(mem *slabs[group]) *group {
	if g.class == 0 {
		return &g.only
	}
	ring := g.ring(mem)
	return &ring[(int(g.head)+int(g.count)-1)&(len(ring)-1)]
}

// expire forgets the groups that are a whole window old.
func (g *groups) expire(mem *slabs[group], now, window int64) {
	if g.count == 0 || now-g.first(mem).end < window {
		return
	}
	if g.class == 0 {
		g.live, g.count = 0, 0
		return
	}
	ring := g.ring(mem)
	for g.count > 0 && now-ring[g.head].end >= window {
		g.live -= ring[g.head].tokens
		g.head = (g.head + 1) & uint8(len(ring)-1)
		g.count--
	}
}

// add logs tokens, more than 0, as consumed now. Groups that are a window old are forgotten before.
func (g *groups) add(mem *slabs[group], now, window int64, tokens uint32) {
	g.live += tokens
	if g.count == 0 {
		g.span, g.least, g.head, g.count = 0, never, 0, 1
		*g.first(mem) = group{end: now, tokens: tokens}
		return
	}
	last := g.last(mem)
	if last.end == now {
		last.tokens += tokens
		return
	}
	shift := quantum(window)
	reach := saturate(quanta(last.end, now, shift) + uint64(g.span))
	if g.full() && !g.grow(mem) {
		if !g.merge(mem, reach, shift) {
			last.reach = saturate(uint64(last.reach) + quanta(last.end, now, shift))
			last.end = now
			last.tokens += tokens
			g.span = reach
			return
		}
		reach = saturate(quanta(g.last(mem).end, now, shift) + uint64(g.span))
	}
	g.least = min(g.least, reach)
	g.span = 0
	g.count++
	*g.last(mem) = group{now, tokens, reach}
}

// full reports whether the ring has no place left.
func (g *groups) full() bool {
	return g.class == 0 || int(g.count) == slabItems(g.class-1)
}

// grow moves a full ring into a larger slab; false if there are enough groups or there is no memory.
func (g *groups) grow(mem *slabs[group]) bool {
	return g.count < maxGroups && g.move(mem, slabClass(int(g.count)+1)+1)
}

// shrink moves a ring that is mostly empty into a smaller slab, or the last group into the bucket.
// Where there is no memory even for that, the ring stays.
func (g *groups) shrink(mem *slabs[group]) {
	if g.class == 0 || int(g.count)*4 > slabItems(g.class-1) {
		return
	}
	if g.count > 1 {
		g.move(mem, slabClass(2*int(g.count))+1)
		return
	}
	if g.count == 1 {
		g.only = *g.last(mem)
	}
	g.release(mem)
}

// release gives the slab back; what is in it is lost.
func (g *groups) release(mem *slabs[group]) {
	if g.class > 0 {
		mem.give(g.slab, g.class-1)
		g.class, g.slab, g.head = 0, 0, 0
	}
}

// move copies the groups into a slab of another class, the first to its front.
func (g *groups) move(mem *slabs[group], class uint8) bool {
	if class == g.class {
		return false
	}
	slab, ok := mem.take(class - 1)
	if !ok {
		return false
	}
	to := mem.at(slab, class-1)
	if g.class == 0 {
		to[0] = g.only
	} else {
		ring := g.ring(mem)
		n := copy(to[:g.count], ring[g.head:])
		copy(to[n:g.count], ring)
		mem.give(g.slab, g.class-1)
	}
	g.slab, g.class, g.head = slab, class, 0
	return true
}

func saturate(quanta uint64) uint32 { return uint32(min(quanta, never)) }
