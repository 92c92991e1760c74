package core

// queue is a first-in first-out ring. It grows by doubling and keeps its array,
// so that in the steady state nothing is allocated.
type queue[T any] struct {
	ring []T // length 0 or a power of two
	head int
	size int
}

func (q *queue[T]) push(v T) {
	if q.size == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.size)&(len(q.ring)-1)] = v
	q.size++
}

// front returns the oldest element, which the caller may change in place, or
// nil. The pointer is good until the next push or pop.
func (q *queue[T]) front() *T {
	if q.size == 0 {
		return nil
	}
	return &q.ring[q.head]
}

// pop removes the oldest element and drops what it refers to.
func (q *queue[T]) pop() {
	var zero T
	q.ring[q.head] = zero
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.size--
}

// clear removes everything.
func (q *queue[T]) clear() {
	clear(q.ring)
	q.head, q.size = 0, 0
}

func (q *queue[T]) grow() {
	ring := make([]T, max(16, 2*len(q.ring)))
	n := copy(ring, q.ring[q.head:])
	copy(ring[n:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}
