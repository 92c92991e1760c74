package sim

// ring is a queue that reuses its memory.
type ring[T any] struct {
	items []T // length 0 or a power of two
	head  int
	n     int
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.items) {
		grown := make([]T, max(8, 2*r.n))
		for i := range r.n {
			grown[i] = r.items[(r.head+i)&(len(r.items)-1)]
		}
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)&(len(r.items)-1)] = v
	r.n++
}

// pop takes the oldest item out; there must be one.
func (r *ring[T]) pop() T {
	var zero T
	v := r.items[r.head]
	r.items[r.head] = zero
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.n--
	return v
}
