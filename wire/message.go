package wire

import (
	"encoding/hex"
	"strconv"

	"github.com/weirhq/weir/ident"
)

// MaxDatagram is the length in bytes of the longest datagram of the protocol; a longer one is
// malformed.
const MaxDatagram = 1200

// Kind tells what a PDU is (docs/protocol.md, "PDU"). The zero value is no kind.
type Kind uint8

// The kinds of PDU.
const (
	KindRequest  Kind = 1 + iota // a client's resource request
	KindResponse                 // a server's answer to one
	KindReport                   // a client's latency report
)

// String returns "request", "response" or "report".
func (k Kind) String() string {
	switch k {
	case KindRequest:
		return "request"
	case KindResponse:
		return "response"
	case KindReport:
		return "report"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// Layout is one of the two layouts of guard and report blocks (docs/protocol.md, "Layouts").
// The zero value is no layout.
type Layout uint8

// The layouts. Layout 1 has a buffer_size in guards and reports, layout 2 has not.
const (
	Layout1 Layout = 1
	Layout2 Layout = 2
)

// String returns "layout 1" or "layout 2".
func (l Layout) String() string {
	if l == Layout1 || l == Layout2 {
		return "layout " + strconv.Itoa(int(l))
	}
	return "Layout(" + strconv.Itoa(int(l)) + ")"
}

// guardSize returns the length of a guard block in bytes.
func (l Layout) guardSize() int {
	if l == Layout1 {
		return guardSize1
	}
	return guardSize2
}

// observationSize returns the length of a report block in bytes.
func (l Layout) observationSize() int {
	if l == Layout1 {
		return observationSize1
	}
	return observationSize2
}

// UniqueID is a logical request's identity: 16 opaque bytes from a cryptographic source, the
// same in every send of the request and in every answer to it.
type UniqueID [16]byte

// String returns the identity as 32 hexadecimal digits.
func (u UniqueID) String() string { return hex.EncodeToString(u[:]) }

// Header is what a datagram's tenant header says (docs/protocol.md, "Tenant header").
type Header struct {
	KeyID     uint64   // the API key's ID; in a response the server ID of who answers
	UniqueID  UniqueID // echoed by a response
	Timestamp uint64   // the sender's wall clock, Unix milliseconds
	Steering  uint8    // in a response: nonzero = keep the source port, 0 = change it
	Mgmt      uint8    // 0; a server drops a datagram with another value
}

// Guard is a latency guard: the request is granted only if the tracker's estimate is below the
// threshold. Latency is the server's estimate in a response; [Credential.AppendRequest] writes 0.
// All durations are milliseconds.
type Guard struct {
	Tracker    ident.ID
	TTL        uint32
	MaxSamples uint32
	BufferSize uint32 // layout 1 only; 0 and not written in layout 2
	MinSamples uint32
	Threshold  uint32
	Latency    uint32
}

// Resource is a token demand on a bucket. In a response Rate is the actual rate (tokens consumed
// in the window now) and Tokens the deficit (0 = covered, else how many were missing).
type Resource struct {
	Bucket ident.ID
	Window uint32 // ms
	Rate   uint32 // tokens a window
	Tokens uint16
}

// Observation is one observed latency of a report. All durations are milliseconds.
type Observation struct {
	Tracker    ident.ID
	TTL        uint32
	MaxSamples uint32
	BufferSize uint32 // layout 1 only; 0 and not written in layout 2
	MinSamples uint32
	Latency    uint32
}

// Request is a resource request to be built. The slices are only read, and not kept.
type Request struct {
	Layout    Layout
	DedupTTL  uint32 // ms, at least 1: how long a server remembers the answer
	Guards    []Guard
	Resources []Resource
	Label     string // metrics label, any bytes; empty = none
}

// Answer holds the numbers of a response in the order of the request's blocks: a latency for each
// guard, a rate and a deficit for each resource.
type Answer struct {
	Latencies []uint32 // ms
	Rates     []uint32 // tokens in the window now
	Deficits  []uint16 // tokens missing; 0 = covered
}
