package load

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The oldest that is taken comes first, whatever was given back in between.
func TestSlotsOrder(t *testing.T) {
	const n = 20
	s := newSlots(n, 2)
	var taken []uint32
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		i := r.Uint32N(n)
		if at := slices.Index(taken, i); at < 0 {
			before := s.all[i].serial
			if s.take(i); s.all[i].serial != before+1 || !s.all[i].busy {
				t.Fatalf("%+v", s.all[i])
			}
			taken = append(taken, i)
		} else {
			s.free(i)
			taken = slices.Delete(taken, at, at+1)
		}
		got, ok := s.oldest()
		if ok != (len(taken) > 0) || ok && got != taken[0] {
			t.Fatalf("%d, %v, of %v", got, ok, taken)
		}
	}
	s.numbers(3)[1] = 7
	if s.buckets[7] != 7 || len(s.numbers(n-1)) != 2 || s.len() != n {
		t.Errorf("%v", s.buckets)
	}
}
