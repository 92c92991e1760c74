package core

import "time"

// deadlineHeap orders the records of requests by their next deadline: an
// indexed 4-ary min-heap, so that a record whose deadline moves is found at
// once. Equal deadlines fire in the order of submission.
type deadlineHeap struct {
	entries []heapEntry
}

// heapEntry repeats what is compared, so that sifting does not touch records.
type heapEntry struct {
	at  time.Duration
	seq uint64
	f   *flight
}

const (
	heapArity = 4
	notInHeap = -1
)

func (e *heapEntry) before(other *heapEntry) bool {
	if e.at != other.at {
		return e.at < other.at
	}
	return e.seq < other.seq
}

// min returns the record with the earliest deadline, or nil.
func (h *deadlineHeap) min() *flight {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0].f
}

// set gives a record its next deadline, and enters it where it is not yet in.
func (h *deadlineHeap) set(f *flight, at time.Duration) {
	f.deadline = at
	e := heapEntry{at: at, seq: f.seq, f: f}
	if f.heapAt == notInHeap {
		h.entries = append(h.entries, e)
		h.up(len(h.entries)-1, e)
		return
	}
	i := f.heapAt
	if e.before(&h.entries[i]) {
		h.up(i, e)
	} else {
		h.down(i, e)
	}
}

// remove takes a record out; it may already be out.
func (h *deadlineHeap) remove(f *flight) {
	i := f.heapAt
	if i == notInHeap {
		return
	}
	f.heapAt = notInHeap
	last := len(h.entries) - 1
	e := h.entries[last]
	h.entries[last] = heapEntry{}
	h.entries = h.entries[:last]
	if i == last {
		return
	}
	if i > 0 && e.before(&h.entries[(i-1)/heapArity]) {
		h.up(i, e)
	} else {
		h.down(i, e)
	}
}

// up places e at i or above; what is at i is overwritten.
func (h *deadlineHeap) up(i int, e heapEntry) {
	for i > 0 {
		parent := (i - 1) / heapArity
		if !e.before(&h.entries[parent]) {
			break
		}
		h.place(i, h.entries[parent])
		i = parent
	}
	h.place(i, e)
}

// down places e at i or below; what is at i is overwritten.
func (h *deadlineHeap) down(i int, e heapEntry) {
	for {
		first := heapArity*i + 1
		if first >= len(h.entries) {
			break
		}
		least := first
		for child := first + 1; child < min(first+heapArity, len(h.entries)); child++ {
			if h.entries[child].before(&h.entries[least]) {
				least = child
			}
		}
		if !h.entries[least].before(&e) {
			break
		}
		h.place(i, h.entries[least])
		i = least
	}
	h.place(i, e)
}

func (h *deadlineHeap) place(i int, e heapEntry) {
	h.entries[i] = e
	e.f.heapAt = i
}
