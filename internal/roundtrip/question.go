package roundtrip

import (
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// question is one datagram that was sent.
type question struct {
	id       wire.UniqueID
	sent     time.Time
	warm     bool
	answered bool // in time or late
}

// bucket is what is asked about: what a client's probes read too, of which nobody ever
// takes a token. Reading a bucket that does not exist does not create it.
var bucket = ident.Bucket(core.ProbeBucket, 1, 1)

// seal draws an identity and makes the datagram that asks for nothing under it.
func (p *prober) seal() (wire.UniqueID, []byte, error) {
	var id wire.UniqueID
	if _, err := io.ReadFull(p.entropy, id[:]); err != nil {
		return id, nil, fmt.Errorf("roundtrip: drawing an identity: %w", err)
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, as a client has it
	h := wire.Header{UniqueID: id, Timestamp: uint64(max(0, p.cfg.Now().UnixMilli()))}
	r := wire.Request{
		Layout: p.cfg.Layout, DedupTTL: p.cfg.dedupTTL(),
		Resources: []wire.Resource{{Bucket: bucket, Window: 1, Rate: 1}},
	}
	datagram, err := p.credential.AppendRequest(p.datagram[:0], p.sealer, &h, &r)
	if err != nil {
		return id, nil, fmt.Errorf("roundtrip: %w", err)
	}
	p.datagram = datagram
	return id, datagram, nil
}
