package core

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/wire"
)

// TestQueueKeepsOrder compares the ring with a slice.
func TestQueueKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[int]
		var model []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) { // many, for the ring to wrap and to grow
				for range rapid.IntRange(1, 12).Draw(t, "pushed") {
					q.push(next)
					model = append(model, next)
					next++
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(0, min(8, len(model))).Draw(t, "popped") {
					if front := q.front(); *front != model[0] {
						t.Fatalf("front %v, want that of %v", *front, model)
					}
					q.pop()
					model = model[1:]
				}
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "rarely") == 0 {
					q.clear()
					model = nil
				}
			},
			"": func(t *rapid.T) {
				front := q.front()
				if (front == nil) != (len(model) == 0) || front != nil && *front != model[0] {
					t.Fatalf("front %v, want that of %v", front, model)
				}
			},
		})
	})
}

// TestHeapOrder compares the heap with a search through all records.
func TestHeapOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h deadlineHeap
		var in []*flight
		seq := uint64(0)
		deadline := rapid.Map(rapid.IntRange(0, 30), func(n int) time.Duration { return time.Duration(n) })
		pick := func(t *rapid.T) int { return rapid.IntRange(0, len(in)-1).Draw(t, "record") }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) { // many, for the heap to have several floors
				for range rapid.IntRange(1, 16).Draw(t, "added") {
					seq++
					f := &flight{seq: seq, heapAt: notInHeap}
					h.set(f, deadline.Draw(t, "deadline"))
					in = append(in, f)
				}
			},
			"move": func(t *rapid.T) {
				if len(in) > 0 {
					h.set(in[pick(t)], deadline.Draw(t, "deadline"))
				}
			},
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					return
				}
				i := pick(t)
				h.remove(in[i])
				h.remove(in[i]) // it may be out already
				in = append(in[:i], in[i+1:]...)
			},
			"": func(t *rapid.T) {
				var least *flight
				for _, f := range in {
					if least == nil || f.deadline < least.deadline || f.deadline == least.deadline && f.seq < least.seq {
						least = f
					}
					if h.entries[f.heapAt].f != f {
						t.Fatalf("record %d is not where it thinks", f.seq)
					}
				}
				checkHeap(t, &h)
				if got := h.min(); got != least {
					t.Fatalf("min %+v, want %+v", got, least)
				}
				if len(h.entries) != len(in) {
					t.Fatalf("%d entries, want %d", len(h.entries), len(in))
				}
			},
		})
	})
}

// TestHeapRemoveGoesUp takes a record out of a late branch, which leaves its place
// to one that belongs further up.
func TestHeapRemoveGoesUp(t *testing.T) {
	var h deadlineHeap
	var records []*flight
	for i, deadline := range []time.Duration{0, 10, 1, 2, 3, 11, 12, 13, 14, 4} {
		f := &flight{seq: uint64(i), heapAt: notInHeap}
		h.set(f, deadline)
		records = append(records, f)
	}
	h.remove(records[5])
	checkHeap(t, &h)
}

// checkHeap fails if an entry comes before the one above it.
func checkHeap(t rapid.TB, h *deadlineHeap) {
	t.Helper()
	for i := 1; i < len(h.entries); i++ {
		if h.entries[i].before(&h.entries[(i-1)/heapArity]) {
			t.Fatalf("entry %d comes before the one above it", i)
		}
	}
}

// TestTableFinds compares the table with a built-in map, with identities that
// share their place in it more often than not.
func TestTableFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table flightTable
		model := map[wire.UniqueID]*flight{}
		identity := rapid.Map(rapid.IntRange(0, 200), func(n int) wire.UniqueID { return wire.UniqueID{byte(n)} })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				f := &flight{uid: identity.Draw(t, "identity")}
				if model[f.uid] == nil {
					table.put(f)
					model[f.uid] = f
				}
			},
			"remove": func(t *rapid.T) {
				if f := model[identity.Draw(t, "identity")]; f != nil {
					table.remove(f)
					delete(model, f.uid)
				}
			},
			"": func(t *rapid.T) {
				if table.used != len(model) {
					t.Fatalf("%d in use, want %d", table.used, len(model))
				}
				for n := range 201 {
					uid := wire.UniqueID{byte(n)}
					if got := table.get(&uid); got != model[uid] {
						t.Fatalf("%v: %p, want %p", uid, got, model[uid])
					}
				}
			},
		})
	})
}

// TestTableGrows fills and empties it far beyond its first size.
func TestTableGrows(t *testing.T) {
	var table flightTable
	var all []*flight
	source := seeded(4)
	for range 10_000 {
		f := &flight{}
		source.Read(f.uid[:])
		table.put(f)
		all = append(all, f)
	}
	for i, f := range all {
		if table.get(&f.uid) != f {
			t.Fatalf("%d is lost", i)
		}
		if i%2 == 0 {
			table.remove(f)
		}
	}
	for i, f := range all {
		if got := table.get(&f.uid); (got == f) != (i%2 == 1) {
			t.Fatalf("%d: %p", i, got)
		}
	}
}

// TestHandlesAreNeverReused takes a slot through its last use.
func TestHandlesAreNeverReused(t *testing.T) {
	var p flightPool
	f := p.get()
	first := f.id
	f.pins = 1
	p.unpin(f)
	if p.find(first) != nil {
		t.Error("a handle outlives its request")
	}
	if g := p.get(); g != f || g.id == first {
		t.Errorf("record %p with handle %d, want the same record with another handle", g, g.id)
	}
	f.cycles = maxCycles - 1
	f.pins = 1
	p.unpin(f)
	last := p.get()
	if last != f || last.id == 0 {
		t.Fatalf("the slot's last use: %+v", last)
	}
	last.pins = 1
	p.unpin(last)
	if g := p.get(); g == f || g.slot == f.slot {
		t.Error("a used-up slot is used again")
	}
	if p.find(0) != nil || p.find(1<<40) != nil {
		t.Error("found what never was")
	}
}
