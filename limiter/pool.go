package limiter

// recordsPerChunk is how many records a pool grows by: small enough for a tenant with three
// buckets, large enough that 10^7 records are some ten thousand chunks.
const recordsPerChunk = 256

// pool stores records of one type and names them by index, so that everything that refers to a
// record is a uint32 and the garbage collector has nothing to follow. Index 0 is no record. Freed
// records are handed out again first; chunks stay with the pool. Every record has a link, which
// chains it to the free list while it is free and to a slot of its owner's wheel or calendar while it
// is not.
type pool[R any] struct {
	records []*[recordsPerChunk]R
	links   links
	free    uint32 // the first free record
	fresh   uint32 // records from here on were never used
	live    int
}

// links are the links of a pool's records.
type links []*[recordsPerChunk]uint32

func (l links) at(i uint32) *uint32 { return &l[i/recordsPerChunk][i%recordsPerChunk] }

// at returns record i, which must be live. The pointer holds until the record is given back.
func (p *pool[R]) at(i uint32) *R { return &p.records[i/recordsPerChunk][i%recordsPerChunk] }

// take returns the index of a record that was free; what is in it is undefined.
func (p *pool[R]) take() uint32 {
	p.live++
	if i := p.free; i != 0 {
		p.free = *p.links.at(i)
		return i
	}
	if p.fresh == 0 {
		p.fresh = 1
	}
	i := p.fresh
	p.fresh++
	if int(i/recordsPerChunk) == len(p.records) {
		p.records = append(p.records, new([recordsPerChunk]R))
		p.links = append(p.links, new([recordsPerChunk]uint32))
	}
	return i
}

// give takes record i back.
func (p *pool[R]) give(i uint32) {
	p.live--
	*p.links.at(i) = p.free
	p.free = i
}
