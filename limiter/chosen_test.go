package limiter

import (
	"encoding/binary"
	"testing"

	"github.com/weirhq/weir/wire"
)

// probeLength returns how many slots a lookup of a tag that is in the table passes, one that finds
// nothing beside.
func (t *table) probeLength(tag uint32) int {
	s := t.segmentOf(tag)
	i, n := home(tag), 1
	for s.slots[i].record != 0 {
		i = after(i)
		n++
	}
	return n
}

// probeLengths returns the mean and the longest probe over all buckets of an engine.
func probeLengths(e *Engine) (mean float64, longest int) {
	entries := 0
	for s := range e.buckets.index.distinct() {
		for _, slot := range &s.slots {
			if slot.record == 0 {
				continue
			}
			n := e.buckets.index.probeLength(slot.tag)
			longest = max(longest, n)
			mean += float64(n)
			entries++
		}
	}
	return mean / float64(entries), longest
}

// Buckets are chosen so that under one secret all of them have one home slot, by ID, or by window and
// rate of one ID. An engine under that secret would have to pass all of them in each probe; under
// another, which no client knows, they are as any others are.
func TestChosenCollisions(t *testing.T) {
	const chosen = 300
	known := testConfig()
	for name, at := range map[string]func(n uint32) wire.Resource{
		"by ID": func(n uint32) wire.Resource {
			r := wire.Resource{Window: 1000, Rate: 10, Tokens: 1}
			binary.LittleEndian.PutUint32(r.Bucket[:], n)
			return r
		},
		"by window and rate": func(n uint32) wire.Resource {
			return wire.Resource{Window: 1000 + n&0xff, Rate: 10 + n>>8, Tokens: 1}
		},
	} {
		secret := newRig(t, known).e.buckets.hash
		var set []wire.Resource
		for n := uint32(0); len(set) < chosen; n++ {
			r := at(n)
			key := bucketKey{r.Bucket, r.Window, r.Rate}
			if home(tag(key.hash(secret))) == 7 {
				set = append(set, r)
			}
		}
		mean := func(c Config, of func(i int) wire.Resource) (float64, int) {
			r := newRig(t, c)
			for i := range chosen {
				if v := r.ask(of(i)); v != Granted {
					t.Fatal(v)
				}
			}
			return probeLengths(r.e)
		}
		one := func(i int) wire.Resource { return set[i] }
		if m, _ := mean(known, one); m < chosen {
			t.Fatalf("%s: under the secret that they were chosen for, a probe is %.1f slots on average: they do not collide", name, m)
		}
		other := known
		other.Seed = [16]byte{9}
		m, longest := mean(other, one)
		usual, _ := mean(other, func(i int) wire.Resource { return at(uint32(i)) })
		if m > 2*usual || longest > 40 {
			t.Errorf("%s: under another secret a probe is %.1f slots on average and %d at most; of numbers in a row it is %.1f", name, m, longest, usual)
		}
	}
}
