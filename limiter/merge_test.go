package limiter

import (
	"math/rand/v2"
	"testing"
)

// spans is the log of a bucket as the rule has it: consumptions, and where one is too many, of all
// neighbors the two that together span least as one.
type spans struct {
	window int64
	list   []spanOf
}

type spanOf struct {
	first, end int64
	tokens     uint32
}

func (s *spans) add(now int64, tokens uint32) {
	for len(s.list) > 0 && now-s.list[0].end >= s.window {
		s.list = s.list[1:]
	}
	s.list = append(s.list, spanOf{now, now, tokens})
	if len(s.list) <= maxGroups {
		return
	}
	at := 1
	for i := range s.list[1:] {
		if i > 0 && s.list[i+1].end-s.list[i].first < s.list[at].end-s.list[at-1].first {
			at = i + 1
		}
	}
	s.list[at].first = s.list[at-1].first
	s.list[at].tokens += s.list[at-1].tokens
	s.list = append(s.list[:at-1], s.list[at:]...)
}

// groupsOf returns the groups of a bucket, the oldest first.
func groupsOf(e *engineBucket) (all []group) {
	r := e.b.pool.at(e.b.find(&e.key, e.hash))
	if r.class == 0 {
		return []group{r.only}
	}
	ring := r.ring(&e.b.mem)
	for k := range int(r.count) {
		all = append(all, ring[(int(r.head)+k)%len(ring)])
	}
	return all
}

// TestMergesTheNearest compares every group of a bucket with the rule, in streams of very different
// paces, of which no two neighbors are equally near.
func TestMergesTheNearest(t *testing.T) {
	merges := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 4))
		const windowMs = 1000 // a quantum is a nanosecond
		e, s := newEngineBucket(windowMs, 1<<31), &spans{window: windowMs * nsPerMs}
		now, pace := int64(0), int64(1<<20)
		for k := range 1500 {
			if rng.IntN(50) == 0 {
				pace = 1 << (12 + rng.IntN(14)) // up to a window for 15
			}
			now += pace + rng.Int64N(pace)
			if rng.IntN(500) == 0 {
				now += windowMs * nsPerMs // and begins anew
			}
			tokens := 1 + rng.Uint32N(9)
			if ok, _ := e.take(now, tokens); !ok {
				t.Fatal("the limit was reached")
			}
			s.add(now, tokens)
			got := groupsOf(e)
			if len(got) != len(s.list) {
				t.Fatalf("seed %d, step %d: %d groups, want %d", seed, k, len(got), len(s.list))
			}
			for i, want := range s.list {
				if got[i].end != want.end || got[i].tokens != want.tokens {
					t.Fatalf("seed %d, step %d: group %d is of %d tokens at %d, want %d at %d",
						seed, k, i, got[i].tokens, got[i].end, want.tokens, want.end)
				}
				if want.first < want.end {
					merges++
				}
			}
		}
	}
	if merges == 0 {
		t.Error("nothing was ever merged")
	}
}
