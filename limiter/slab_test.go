package limiter

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSlabClass(t *testing.T) {
	for n := 0; n <= maxSamples; n++ {
		c := slabClass(n)
		if slabItems(c) < n || c > 0 && slabItems(c-1) >= n {
			t.Fatalf("%d items get class %d of %d items", n, c, slabItems(c))
		}
	}
	if c := slabClass(maxSamples); c != slabClasses-1 {
		t.Errorf("the largest class is %d, want %d", c, slabClasses-1)
	}
}

// TestSlabs fills every slab with its own mark and finds it again: no two overlap, whatever was
// given back before.
func TestSlabs(t *testing.T) {
	type owned struct {
		slab  uint32
		class uint8
		mark  uint32
	}
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Uint8Range(0, slabClasses-1).Draw(t, "largest class")
		s := slabs[uint32]{limit: rapid.IntRange(0, 100*slabChunk).Draw(t, "limit")}
		var all []owned
		used := 0
		for mark := range rapid.Uint32Range(0, 300).Draw(t, "steps") {
			if class := rapid.Uint8Range(0, most).Draw(t, "class"); rapid.IntRange(0, 2).Draw(t, "take") > 0 {
				slab, ok := s.take(class)
				if !ok {
					if s.items+max(slabChunk, slabItems(class)) <= s.limit {
						t.Fatalf("class %d is refused with %d of %d items", class, s.items, s.limit)
					}
					continue
				}
				mem := s.at(slab, class)
				if len(mem) != slabItems(class) {
					t.Fatalf("a slab of class %d has %d items", class, len(mem))
				}
				for i := range mem {
					mem[i] = mark
				}
				all = append(all, owned{slab, class, mark})
				used += len(mem)
			} else if len(all) > 0 {
				k := rapid.IntRange(0, len(all)-1).Draw(t, "give")
				s.give(all[k].slab, all[k].class)
				used -= slabItems(all[k].class)
				all[k] = all[len(all)-1]
				all = all[:len(all)-1]
			}
			if s.items > s.limit {
				t.Fatalf("%d items, over the limit of %d", s.items, s.limit)
			}
		}
		for _, o := range all {
			for _, m := range s.at(o.slab, o.class) {
				if m != o.mark {
					t.Fatalf("a slab marked %d holds %d", o.mark, m)
				}
			}
		}
		if s.used != used {
			t.Fatalf("%d items are counted as used, want %d", s.used, used)
		}
		for _, o := range all {
			s.give(o.slab, o.class)
		}
		if s.used != 0 {
			t.Fatalf("%d items are used when all is given back", s.used)
		}
	})
}

// TestSlabsRecycle takes chunks of small slabs for large ones and back.
func TestSlabsRecycle(t *testing.T) {
	s := slabs[uint32]{limit: 4 * slabChunk}
	take := func(class uint8, n int) (all []uint32) {
		for range n {
			slab, ok := s.take(class)
			if !ok {
				t.Fatalf("no slab of class %d, with %d of %d items used", class, s.used, s.limit)
			}
			all = append(all, slab)
		}
		return all
	}
	for class := range uint8(11) { // 4 << 10 = all four chunks
		slabs := take(class, 4*slabChunk/slabItems(class))
		if _, ok := s.take(class); ok {
			t.Errorf("class %d: more than the limit was handed out", class)
		}
		for _, slab := range slabs {
			s.give(slab, class)
		}
	}
	if s.used != 0 || len(s.chunks) > 4+1 {
		t.Errorf("%d used, %d chunks", s.used, len(s.chunks))
	}
	// A lowered limit lets memory go as it comes back.
	slabs := take(0, 4*slabChunk/slabMin)
	s.limit = slabChunk
	for _, slab := range slabs {
		s.give(slab, 0)
	}
	if s.items != slabChunk {
		t.Errorf("%d items are kept, want %d", s.items, slabChunk)
	}
}
