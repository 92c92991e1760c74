package load

// slots are a flow's places for requests in flight. Those that are taken are in a list, in the order
// in which they were, so that what is lost is found without a look at the others.
type slots struct {
	all      []slot   // one more than there are: its neighbors are the list's ends
	buckets  []uint32 // numbers of each slot's
	each     int      // of them
	rotation uint32   // the slot that an open loop takes next
}

// slot is a place for one request in flight.
type slot struct {
	serial     uint32 // counts those that were here
	prev, next uint32 // in the list
	busy       bool
	counts     bool   // it was due between begin and end
	due        int64  // ns after the start: when it was to be sent
	sent       int64  // when it was, Unix ns
	datagram   []byte // to be replayed, if there are replays
}

func newSlots(n, resources int) slots {
	s := slots{all: make([]slot, n+1), buckets: make([]uint32, n*resources), each: resources}
	s.end().prev, s.end().next = uint32(n), uint32(n)
	return s
}

func (s *slots) len() int   { return len(s.all) - 1 }
func (s *slots) end() *slot { return &s.all[len(s.all)-1] }

// numbers returns the places of a slot's buckets.
func (s *slots) numbers(i uint32) []uint32 {
	at := int(i) * s.each
	return s.buckets[at : at+s.each : at+s.each]
}

// oldest returns the slot that was taken first of those that are.
func (s *slots) oldest() (i uint32, ok bool) {
	i = s.end().next
	return i, int(i) != s.len()
}

// take takes a free slot for a new request.
func (s *slots) take(i uint32) *slot {
	at, end := &s.all[i], s.end()
	at.serial++
	at.busy, at.prev, at.next = true, end.prev, uint32(s.len())
	s.all[end.prev].next = i
	end.prev = i
	return at
}

// free gives a slot back.
func (s *slots) free(i uint32) {
	at := &s.all[i]
	at.busy = false
	s.all[at.prev].next, s.all[at.next].prev = at.next, at.prev
}
