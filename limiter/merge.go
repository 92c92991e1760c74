package limiter

// merge makes room in a full ring: of all neighbors, the next group to come included, the two that
// together span least become one. reach is what the last group and the next would span. It returns
// false when those are the two; nothing is changed then, and the last group is to take in the next.
func (g *groups) merge(mem *slabs[group], reach uint32, shift uint) bool {
	if g.count == 1 || reach <= g.least {
		return false
	}
	ring := g.ring(mem)
	mask := len(ring) - 1
	ring[g.head].reach = never
	var at int
	at, g.least = nearest(ring)
	if reach <= g.least {
		return false
	}
	// Groups before and at become one, in place of at.
	before := (at - 1) & mask
	later, earlier := &ring[at], &ring[before]
	if k := (at - int(g.head)) & mask; k == int(g.count)-1 {
		g.span = later.reach
	} else {
		next := &ring[(at+1)&mask]
		next.reach = saturate(quanta(later.end, next.end, shift) + uint64(later.reach))
	}
	later.reach = saturate(quanta(earlier.end, later.end, shift) + uint64(earlier.reach))
	later.tokens += earlier.tokens
	g.remove(ring, before)
	g.count--
	return true
}

// nearest returns the group with the smallest reach, and its reach.
func nearest(ring []group) (at int, reach uint32) {
	// Reach and index in one word: the smallest word has both, without a branch on the data.
	best := ^uint64(0)
	for i := range ring {
		best = min(best, uint64(ring[i].reach)<<32|uint64(i))
	}
	return int(uint32(best)), uint32(best >> 32)
}

// remove closes the gap that group i leaves in a full ring, by moving the groups on its shorter
// side.
func (g *groups) remove(ring []group, i int) {
	mask := len(ring) - 1
	head := int(g.head)
	k := (i - head) & mask
	if k < len(ring)/2 {
		for ; k > 0; k-- {
			ring[(head+k)&mask] = ring[(head+k-1)&mask]
		}
		g.head = uint8((head + 1) & mask)
		return
	}
	for ; k < len(ring)-1; k++ {
		ring[(head+k)&mask] = ring[(head+k+1)&mask]
	}
}
