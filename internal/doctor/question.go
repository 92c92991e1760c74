package doctor

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// The bucket and the tracker that are asked for. Reading them consumes nothing and
// creates nothing; a label would show up in the servers' metrics, so there is none.
const (
	bucketName  = "weir doctor"
	trackerName = "weir doctor"
)

// kind is what a question is to find out.
type kind uint8

const (
	plain   kind = iota // a round trip, as a client would ask
	long                // as many bytes as a datagram may have
	guarded             // a latency guard, in the layout given
	other               // a latency guard, in the other layout
	brief               // a short dedup TTL
	shifted             // another time's stamp
)

// question is one request, sent once under an identity of its own.
type question struct {
	kind  kind
	shift time.Duration // of the stamp
	ttl   uint32        // dedup TTL, ms

	id       wire.UniqueID
	layout   wire.Layout
	blocks   int // resources
	datagram []byte
	sent     time.Time
	answered bool
	rtt      time.Duration
}

// otherThan returns the other layout.
func otherThan(l wire.Layout) wire.Layout {
	if l == wire.Layout1 {
		return wire.Layout2
	}
	return wire.Layout1
}

// seal makes the question's datagram, stamped for now.
func (q *question) seal(c *wire.Credential, s *wire.Sealer, entropy io.Reader, l wire.Layout, now time.Time) error {
	if _, err := io.ReadFull(entropy, q.id[:]); err != nil {
		return fmt.Errorf("doctor: drawing an identity: %w", err)
	}
	q.id[6], q.id[8] = q.id[6]&0x0f|0x40, q.id[8]&0x3f|0x80 // version 4, as a client has it
	q.layout = l
	if q.kind == other {
		q.layout = otherThan(l)
	}
	h := wire.Header{UniqueID: q.id, Timestamp: uint64(max(0, now.Add(q.shift).UnixMilli()))}
	r := wire.Request{Layout: q.layout, DedupTTL: q.ttl}
	if q.kind == guarded || q.kind == other {
		r.Guards = []wire.Guard{guard(q.layout)}
	}
	q.blocks = 1
	if q.kind == long {
		for wire.RequestSize(c.Auth(), q.layout, 0, q.blocks+1, 0) <= wire.MaxDatagram {
			q.blocks++
		}
	}
	read := wire.Resource{Bucket: ident.Bucket(bucketName, 1, 1), Window: 1, Rate: 1}
	for range q.blocks {
		r.Resources = append(r.Resources, read)
	}
	var err error
	q.datagram, err = c.AppendRequest(nil, s, &h, &r)
	return err
}

// guard is on a tracker that nobody reports to, so that it passes.
func guard(l wire.Layout) wire.Guard {
	g := wire.Guard{TTL: 1, MaxSamples: 1, MinSamples: 1, Threshold: math.MaxUint32}
	g.Tracker = ident.Tracker(trackerName, 1, 1, 1)
	if l == wire.Layout1 {
		g.BufferSize = 1
		g.Tracker = ident.TrackerLayout1(trackerName, 1, 1, 1, 1)
	}
	return g
}

// asks reports whether a response has the question's blocks, in any order.
func (q *question) asks(v *wire.ResponseView) bool {
	guards := 0
	if q.kind == guarded || q.kind == other {
		guards = 1
	}
	if v.Guards() != guards || v.Resources() != q.blocks {
		return false
	}
	for i := range guards {
		if v.Guard(i).Tracker != guard(q.layout).Tracker {
			return false
		}
	}
	for i := range q.blocks {
		if v.Resource(i).Bucket != ident.Bucket(bucketName, 1, 1) {
			return false
		}
	}
	return true
}
