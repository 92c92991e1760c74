package limiter

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// count returns how often a record is found under a tag.
func (t *table) count(tag, record uint32) (n int) {
	p := t.probe(tag)
	for i := p.next(); i != 0; i = p.next() {
		if i == record {
			n++
		}
	}
	return n
}

// TestTable compares a table with a map: every record is found once, under its tag and no other.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		tags := map[uint32]uint32{} // by record
		next := uint32(1)
		// Few bits make tags equal and homes neighbors; they never fill a segment.
		mask := rapid.SampledFrom([]uint32{0xffffffff, 0xfff, 0x80000fff, 0xff000000, 0xff}).Draw(t, "mask")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(0, 3000).Draw(t, "steps") {
			if tag := rng.Uint32() & mask; rng.IntN(3) > 0 && (mask == 0xffffffff || len(tags) < 400) {
				if !tab.hasRoom(tag) {
					t.Fatal("no room")
				}
				tab.add(tag, next)
				tags[next] = tag
				next++
				continue
			}
			victim := 1 + rng.Uint32N(next)
			if tag, ok := tags[victim]; ok {
				tab.remove(tag, victim)
				delete(tags, victim)
			}
		}
		for record := uint32(1); record < next; record++ {
			tag, ok := tags[record]
			want := 0
			if ok {
				want = 1
			}
			if n := tab.count(tag, record); n != want {
				t.Fatalf("record %d is found %d times, want %d", record, n, want)
			}
			if n := tab.count(tag^0x1000, record); n != 0 {
				t.Fatalf("record %d is found under another tag", record)
			}
		}
		entries := 0
		for s := range tab.distinct() {
			entries += int(s.entries)
		}
		if entries != len(tags) {
			t.Fatalf("the segments count %d entries, want %d", entries, len(tags))
		}
	})
}

// distinct returns the table's segments.
func (t *table) distinct() map[*segment]bool {
	set := map[*segment]bool{}
	for _, s := range t.directory {
		set[s] = true
	}
	return set
}

// TestTableGrows fills a table with very many records: segments stay between sparse and full.
func TestTableGrows(t *testing.T) {
	var tab table
	rng := rand.New(rand.NewPCG(1, 2))
	tags := map[uint32]uint32{}
	for record := uint32(1); record <= 300_000; record++ {
		tag := rng.Uint32()
		tab.add(tag, record)
		tags[record] = tag
	}
	for record, tag := range maps.All(tags) {
		if tab.count(tag, record) != 1 {
			t.Fatalf("record %d is not found", record)
		}
	}
	segments := len(tab.distinct())
	if segments != tab.segments {
		t.Errorf("%d segments are counted, %d are there", tab.segments, segments)
	}
	if load := 300_000.0 / float64(segments*segmentSlots); load < 0.35 || load > 0.82 {
		t.Errorf("the segments are %.2f full", load)
	}
	for s := range tab.distinct() {
		if s.entries > segmentFull {
			t.Errorf("a segment has %d entries, more than %d", s.entries, segmentFull)
		}
	}
}

// TestTableFull lets several hundred records share the first bits of their tags, which no keyed hash
// does: the table says so in time, and every probe still ends.
func TestTableFull(t *testing.T) {
	var tab table
	const tag = 0xabcde000
	n := uint32(0)
	for tab.hasRoom(tag) {
		n++
		tab.add(tag|n&0xfff, n)
	}
	if n < segmentFull || n > segmentSlots-segmentRoom {
		t.Errorf("there was room for %d records", n)
	}
	for range segmentRoom - 1 {
		n++
		tab.add(tag|n&0xfff, n)
	}
	for record := uint32(1); record <= n; record++ {
		if tab.count(tag|record&0xfff, record) != 1 {
			t.Fatalf("record %d is not found", record)
		}
	}
	if tab.count(tag|0xfff, n+1) != 0 {
		t.Error("an absent record is found")
	}
}

func BenchmarkTable(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		var tab table
		for i := range uint32(n) {
			tab.add(i*0x9e3779b1, i+1)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			i, found := uint32(0), uint32(0)
			for b.Loop() {
				p := tab.probe(i % uint32(n) * 0x9e3779b1)
				found += p.next()
				i += 7919
			}
			b.ReportMetric(float64(tab.memory())/float64(n), "bytes/entry")
		})
	}
}

// TestTableLopsided makes the directory long for the tags of one corner, and then fills the rest, whose
// segments a long run of the directory points to.
func TestTableLopsided(t *testing.T) {
	var tab table
	rng := rand.New(rand.NewPCG(3, 4))
	tags := map[uint32]uint32{}
	for record := uint32(1); record <= 20_000; record++ {
		tag := rng.Uint32()
		if record <= 4000 {
			tag >>= 9
		}
		tab.add(tag, record)
		tags[record] = tag
	}
	for record, tag := range maps.All(tags) {
		if tab.count(tag, record) != 1 {
			t.Fatalf("record %d is not found", record)
		}
	}
}
