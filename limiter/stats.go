package limiter

import "unsafe"

// Stats is the state of an [Engine] in numbers. Counts of live records include those that have just
// expired and are not taken back yet.
type Stats struct {
	Buckets    int // live buckets
	Groups     int // places for groups in use by buckets with more than one
	Trackers   int // live latency trackers
	Samples    int // places for samples in use
	Pacers     int // guards whose requests are counted, to pace them when need be
	Pacing     int // guards that have tripped and pace their requests, or drain first
	Identities int // remembered identities
	Answers    int // answers kept for repeats

	Degraded      uint64 // identities forgotten before their time, for want of room
	AnswersLost   uint64 // answers forgotten within their TTL, for want of room
	RefusedBlocks uint64 // resource blocks rejected because no bucket had room
	Shadowed      uint64 // rejections that were answered so that they pass
	Trips         uint64 // how often guards began to drain
	DroppedBlocks uint64 // report blocks dropped because no tracker had room
	Floor         uint64 // Unix ms: unknown datagrams with timestamps up to it are dropped
	// Latest is in Unix ms, too: no copy of what was ever executed has a later timestamp. It is the
	// Start of an engine that comes after this one.
	Latest uint64
	Memory int // bytes held for records, tables, groups, samples and answers
}

// Stats returns the engine's numbers. It looks at no record and does not allocate.
func (e *Engine) Stats() Stats {
	b, t, d := &e.buckets, &e.trackers, &e.dedup
	return Stats{
		Buckets:    b.pool.live,
		Groups:     b.mem.used,
		Trackers:   t.pool.live,
		Samples:    t.mem.used,
		Pacers:     t.pacers.live,
		Pacing:     t.active,
		Identities: d.pool.live,
		Answers:    e.answers.held,

		Degraded:      d.degraded,
		AnswersLost:   e.answers.owed,
		RefusedBlocks: e.refused,
		Trips:         t.trips,
		DroppedBlocks: e.dropped,
		Shadowed:      e.shadowed,
		Floor:         d.floor,
		Latest:        d.latest,
		Memory: int(unsafe.Sizeof(*e)) + b.pool.memory() + b.index.memory() + b.mem.memory() +
			t.pool.memory() + t.index.memory() + t.mem.memory() + t.pacers.memory() +
			d.pool.memory() + d.index.memory() + d.calendar.memory() + e.answers.memory + len(e.answers.pages)*int(unsafe.Sizeof(page{})),
	}
}

// WorstCase returns how many bytes an engine with this configuration can come to hold
// ([Stats.Memory]): every quota used up, every bucket and tracker at its largest. It does not count
// what the garbage collector keeps beside. An invalid configuration has none, 0.
func (c Config) WorstCase() int {
	c, err := c.complete()
	if err != nil {
		return 0
	}
	n := int(unsafe.Sizeof(Engine{}))
	n += recordBytes[bucket](int(c.RateBuckets)) + c.groupLimit()*int(unsafe.Sizeof(group{}))
	n += recordBytes[tracker](int(c.LatencyServices)) + c.sampleLimit()*int(unsafe.Sizeof(sample{}))
	if c.Pacing {
		n += int(c.LatencyServices) * maxPacers * (int(unsafe.Sizeof(pacer{})) + 4)
	}
	n += recordBytes[identity](c.Identities) + calendarPages*int(unsafe.Sizeof(calendarPage{}))
	pages := max(c.AnswerBytes/answerPage(c.AnswerBytes), 2)
	return n + pages*(answerPage(c.AnswerBytes)+int(unsafe.Sizeof(page{})))
}

// recordBytes returns the bytes that n records of a type take at most, with their links and table.
func recordBytes[R any](n int) int {
	var p pool[R]
	chunks := n/recordsPerChunk + 1
	// Segments split when they are full, so in the long run they are half of that full.
	segments := n/(segmentFull/2) + 1
	return chunks*p.chunkBytes() + segments*int(unsafe.Sizeof(segment{}))
}

func (p *pool[R]) chunkBytes() int {
	var r R
	return recordsPerChunk * (int(unsafe.Sizeof(r)) + 4)
}

func (p *pool[R]) memory() int { return len(p.records) * p.chunkBytes() }

func (t *table) memory() int {
	return t.segments*int(unsafe.Sizeof(segment{})) + 8*len(t.directory)
}

func (c *calendar) memory() int { return c.held * int(unsafe.Sizeof(calendarPage{})) }

func (s *slabs[T]) memory() int {
	var item T
	return s.items*int(unsafe.Sizeof(item)) + len(s.chunks)*int(unsafe.Sizeof(chunk[T]{}))
}
