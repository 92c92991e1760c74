package limiter

const (
	segmentSlots = 511 // with the segment's header 4 KiB
	segmentFull  = 416 // entries at which a segment splits: probes stay short
	segmentRoom  = 64  // slots kept free in a segment that cannot split any more
	segmentDepth = 20  // bits of a tag that choose the segment, at most
	segmentBits  = 12  // bits of a tag that choose the home slot: the low ones
)

// table finds records by the hash of their key: extendible hashing. The high bits of a 32-bit tag
// choose a segment, the low ones a home slot in it; within a segment, entries are found by linear
// probing. A full segment splits in two, so the table grows by one small page at a time and never
// rehashes as a whole; only the directory, a pointer a segment, is copied when it doubles. A lookup
// reads the directory and one run of slots.
//
// A tag does not prove a key: the caller compares the records that a probe yields.
type table struct {
	directory []*segment
	depth     uint8 // the directory has 1<<depth pointers
	segments  int
}

type segment struct {
	entries uint16
	depth   uint8 // bits of the tag that all entries share
	slots   [segmentSlots]slot
}

// slot is an entry of a table; record 0 means that it is free.
type slot struct{ tag, record uint32 }

// tag returns the part of a hash that a table works with.
func tag(hash uint64) uint32 { return uint32(hash >> 32) }

func home(tag uint32) int {
	return int(tag & (1<<segmentBits - 1) * segmentSlots >> segmentBits)
}

// probe walks the records under one tag.
type probe struct {
	segment *segment
	tag     uint32
	at      int
}

// probe returns a walk over the records under a tag. The table must not change during it.
func (t *table) probe(tag uint32) probe {
	if len(t.directory) == 0 {
		return probe{}
	}
	return probe{t.segmentOf(tag), tag, home(tag)}
}

// next returns the next record, or 0 behind the last.
func (p *probe) next() uint32 {
	if p.segment == nil {
		return 0
	}
	for {
		s := p.segment.slots[p.at]
		if p.at++; p.at == segmentSlots {
			p.at = 0
		}
		if s.record == 0 || s.tag == p.tag {
			return s.record
		}
	}
}

// hasRoom reports whether a few dozen more records can be added under a tag. It is false only when
// several hundred records share a tag's first bits, which a keyed hash does not let happen.
func (t *table) hasRoom(tag uint32) bool {
	if len(t.directory) == 0 {
		return true
	}
	s := t.segmentOf(tag)
	return s.depth < segmentDepth || s.entries < segmentSlots-segmentRoom
}

// add enters a record under a tag. The table has room for it.
func (t *table) add(tag, record uint32) {
	if len(t.directory) == 0 {
		t.directory = []*segment{new(segment)}
		t.segments = 1
	}
	s := t.segmentOf(tag)
	for s.entries >= segmentFull && s.depth < segmentDepth {
		t.split(tag)
		s = t.segmentOf(tag)
	}
	s.add(slot{tag, record})
}

// remove takes out a record that is under a tag.
func (t *table) remove(tag, record uint32) {
	s := t.segmentOf(tag)
	i := home(tag)
	for s.slots[i].record != record {
		i = after(i)
	}
	s.entries--
	// Close the gap: an entry further on may fill it unless its home lies behind the gap.
	for j := after(i); s.slots[j].record != 0; j = after(j) {
		if distance(home(s.slots[j].tag), j) >= distance(i, j) {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
}

func (t *table) segmentOf(tag uint32) *segment {
	return t.directory[uint64(tag)<<t.depth>>32]
}

// split divides the entries of a tag's segment between it and a new one.
func (t *table) split(tag uint32) {
	old := t.segmentOf(tag)
	if old.depth == t.depth {
		t.double()
	}
	entries := old.slots
	*old = segment{depth: old.depth + 1}
	low, high := old, &segment{depth: old.depth}
	for _, s := range &entries {
		switch {
		case s.record == 0:
		case s.tag<<(old.depth-1)>>31 == 0:
			low.add(s)
		default:
			high.add(s)
		}
	}
	t.segments++
	// The directory's pointers to the segment are a run; the second half of it is the new one's.
	half := 1 << (t.depth - old.depth)
	first := int(uint64(tag)<<t.depth>>32) &^ (2*half - 1)
	for i := first + half; i < first+2*half; i++ {
		t.directory[i] = high
	}
}

// double makes the directory twice as long.
func (t *table) double() {
	directory := make([]*segment, 2*len(t.directory))
	for i, s := range t.directory {
		directory[2*i], directory[2*i+1] = s, s
	}
	t.directory = directory
	t.depth++
}

func (s *segment) add(e slot) {
	i := home(e.tag)
	for s.slots[i].record != 0 {
		i = after(i)
	}
	s.slots[i] = e
	s.entries++
}

// after returns the slot that follows slot i, around the end.
func after(i int) int {
	if i++; i == segmentSlots {
		return 0
	}
	return i
}

// distance returns how many steps a probe takes from slot i to slot j.
func distance(i, j int) int {
	if j < i {
		return j + segmentSlots - i
	}
	return j - i
}
