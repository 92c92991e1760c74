package limiter

import "math/bits"

const (
	slabMin     = 4    // items of the smallest slab
	slabChunk   = 1024 // items of a chunk, which slabs up to that size share
	slabBits    = 10   // log2 of it
	slabClasses = 14   // slabMin << 13 = 32768 items
	slabMasks   = slabChunk / slabMin / 64
)

// slabs hands out runs of items of one type in sizes of powers of two ("classes": slabMin << class
// items) and names them by a uint32. A chunk holds slabs of one class. When its last slab is
// given back it is any class's again, so that many small slabs that became large ones do not stay
// behind as waste. There is a bound on the items of all chunks together.
type slabs[T any] struct {
	chunks  []*chunk[T]
	partial [slabClasses]uint32 // per class the first chunk with a free slab, by number + 1
	empty   uint32              // the first chunk without slabs, by number + 1
	vacant  uint32              // the first chunk without memory, by number + 1
	items   int                 // of all chunks
	limit   int                 // what items may grow to
	used    int                 // items in slabs that are handed out
}

// chunk is a piece of memory, and which of its slabs are free. next and prev chain it to others
// with the same wants, by number + 1.
type chunk[T any] struct {
	items      []T
	free       [slabMasks]uint64
	room       uint16 // free slabs
	class      uint8
	next, prev uint32
}

// slabItems returns how many items a slab of a class has.
func slabItems(class uint8) int { return slabMin << class }

// slabClass returns the class of the smallest slab that holds n items, n being at most 32768.
func slabClass(n int) uint8 {
	return uint8(max(0, bits.Len(uint(max(n, 1)-1))-bits.Len(slabMin-1)))
}

// at returns a slab that was handed out.
func (s *slabs[T]) at(slab uint32, class uint8) []T {
	first := int(slab % slabChunk)
	return s.chunks[slab/slabChunk].items[first : first+slabItems(class)]
}

// take hands out a slab of a class, with what its last owner left in it; false means that the bound
// is reached.
func (s *slabs[T]) take(class uint8) (slab uint32, ok bool) {
	n := s.partial[class]
	if n == 0 {
		if n = s.chunk(class); n == 0 {
			return 0, false
		}
		s.push(&s.partial[class], n)
	}
	c := s.chunks[n-1]
	m := 0
	for c.free[m] == 0 {
		m++
	}
	bit := bits.TrailingZeros64(c.free[m])
	c.free[m] &^= 1 << bit
	if c.room--; c.room == 0 {
		s.unlink(&s.partial[class], n)
	}
	s.used += slabItems(class)
	return (n-1)*slabChunk + uint32((m*64+bit)*slabItems(class)), true
}

// give takes a slab back.
func (s *slabs[T]) give(slab uint32, class uint8) {
	n := slab/slabChunk + 1
	c := s.chunks[n-1]
	i := int(slab%slabChunk) / slabItems(class)
	c.free[i/64] |= 1 << (i % 64)
	s.used -= slabItems(class)
	if c.room++; c.room == 1 {
		s.push(&s.partial[class], n)
	}
	if int(c.room)*slabItems(class) < len(c.items) {
		return
	}
	s.unlink(&s.partial[class], n)
	s.push(&s.empty, n)
	if len(c.items) > slabChunk || s.items > s.limit {
		s.release(n)
	}
}

// chunk returns the number + 1 of a chunk of free slabs of a class, or 0 when the bound is reached.
func (s *slabs[T]) chunk(class uint8) uint32 {
	size := max(slabChunk, slabItems(class))
	n := s.empty
	if n != 0 && size == slabChunk {
		s.unlink(&s.empty, n)
	} else if n = s.grow(size); n == 0 {
		return 0
	}
	c := s.chunks[n-1]
	c.class = class
	c.room = uint16(size / slabItems(class))
	c.free = [slabMasks]uint64{}
	for i := range int(c.room) {
		c.free[i/64] |= 1 << (i % 64)
	}
	return n
}

// grow returns the number + 1 of a chunk with new memory, or 0 when the bound is reached.
func (s *slabs[T]) grow(size int) uint32 {
	for s.items+size > s.limit && s.empty != 0 {
		s.release(s.empty)
	}
	if s.items+size > s.limit {
		return 0
	}
	n := s.vacant
	if n != 0 {
		s.unlink(&s.vacant, n)
	} else {
		s.chunks = append(s.chunks, new(chunk[T]))
		n = uint32(len(s.chunks))
	}
	s.chunks[n-1].items = make([]T, size)
	s.items += size
	return n
}

// release lets go of the memory of empty chunk n.
func (s *slabs[T]) release(n uint32) {
	s.unlink(&s.empty, n)
	c := s.chunks[n-1]
	s.items -= len(c.items)
	c.items = nil
	s.push(&s.vacant, n)
}

// push puts chunk n at the head of a list.
func (s *slabs[T]) push(head *uint32, n uint32) {
	c := s.chunks[n-1]
	c.next, c.prev = *head, 0
	if c.next != 0 {
		s.chunks[c.next-1].prev = n
	}
	*head = n
}

// unlink takes chunk n out of a list.
func (s *slabs[T]) unlink(head *uint32, n uint32) {
	c := s.chunks[n-1]
	if c.next != 0 {
		s.chunks[c.next-1].prev = c.prev
	}
	if c.prev != 0 {
		s.chunks[c.prev-1].next = c.next
	} else {
		*head = c.next
	}
}
