package wire

import (
	"encoding/binary"

	"github.com/weirhq/weir/ident"
)

// blocks are the guards, the resources and the rest of a request or response, within bounds that
// are checked. Each slice ends where its blocks end, so that a wrong index cannot read on.
type blocks struct {
	layout    Layout
	guards    []byte
	resources []byte
	rest      []byte
}

// Guards returns how many guards there are.
func (b *blocks) Guards() int { return len(b.guards) / b.layout.guardSize() }

// Guard returns guard i, counted from 0. Like a slice it panics when i is out of range.
func (b *blocks) Guard(i int) Guard {
	size := b.layout.guardSize()
	p := b.guards[i*size : (i+1)*size]
	g := Guard{
		Tracker:    ident.ID(p[:idSize]),
		TTL:        binary.LittleEndian.Uint32(p[ttlAt:]),
		MaxSamples: binary.LittleEndian.Uint32(p[maxSamplesAt:]),
		MinSamples: binary.LittleEndian.Uint32(p[size-guardMinEnd:]),
		Threshold:  binary.LittleEndian.Uint32(p[size-thresholdEnd:]),
		Latency:    binary.LittleEndian.Uint32(p[size-latencyEnd:]),
	}
	if b.layout == Layout1 {
		g.BufferSize = binary.LittleEndian.Uint32(p[bufferSizeAt:])
	}
	return g
}

// Resources returns how many resources there are.
func (b *blocks) Resources() int { return len(b.resources) / resourceSize }

// Resource returns resource i, counted from 0. Like a slice it panics when i is out of range.
func (b *blocks) Resource(i int) Resource {
	p := b.resources[i*resourceSize : (i+1)*resourceSize]
	return Resource{
		Bucket: ident.ID(p[:idSize]),
		Window: binary.LittleEndian.Uint32(p[windowAt:]),
		Rate:   binary.LittleEndian.Uint32(p[rateAt:]),
		Tokens: binary.LittleEndian.Uint16(p[tokensAt:]),
	}
}

// Rest returns what follows the blocks within the PDU: nothing, or a run of well-formed TLVs to be
// walked with [NextTLV]. It is a view.
func (b *blocks) Rest() []byte { return b.rest }

// split cuts a body into blocks of a layout. It reports whether the layout fits: the blocks are
// within the body, and the rest is empty or a run of well-formed TLVs. Counts of 65535 are as good
// as any: the products stay far below the range of an int, and nothing is walked that is not there.
func (b *blocks) split(body []byte, l Layout) bool {
	guards := int(binary.LittleEndian.Uint16(body)) * l.guardSize()
	resources := int(binary.LittleEndian.Uint16(body[2:])) * resourceSize
	body = body[countsSize:]
	if guards+resources > len(body) {
		return false
	}
	rest := body[guards+resources:]
	if !filled(rest) {
		return false
	}
	b.layout = l
	b.guards = body[:guards:guards]
	b.resources = body[guards : guards+resources : guards+resources]
	b.rest = rest
	return true
}

// blank reports whether the fields that a request leaves 0 are 0: every guard's current latency
// and every resource's padding.
func (b *blocks) blank() bool {
	size := b.layout.guardSize()
	for p := b.guards; len(p) > 0; p = p[size:] {
		if binary.LittleEndian.Uint32(p[size-latencyEnd:]) != 0 {
			return false
		}
	}
	for p := b.resources; len(p) > 0; p = p[resourceSize:] {
		if binary.LittleEndian.Uint16(p[resourcePadding:]) != 0 {
			return false
		}
	}
	return true
}
