package runner

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// scribe writes what the servers of a trace answer.
type scribe struct {
	trace  *conformance.Trace
	good   *wire.Credential
	other  *wire.Credential // of another key in the same mode
	sealer *wire.Sealer
}

func newScribe(t *conformance.Trace, key apikey.Key, entropy io.Reader) (*scribe, error) {
	good, err := wire.NewCredential(key)
	if err != nil {
		return nil, err
	}
	foreign, err := apikey.New(key.Auth(), key.ID(), apikey.DefaultQuotas(), entropy)
	if err != nil {
		return nil, err
	}
	other, err := wire.NewCredential(foreign)
	if err != nil {
		return nil, err
	}
	sealer, err := wire.NewSealer(entropy)
	if err != nil {
		return nil, err
	}
	return &scribe{t, good, other, sealer}, nil
}

// answer writes the datagram of an answer to the request that a client sent.
func (s *scribe) answer(a *conformance.Answer, request []byte) ([]byte, error) {
	var e wire.Envelope
	if err := wire.ParseEnvelope(request, &e); err != nil {
		return nil, err
	}
	var scratch wire.Scratch
	pdu, err := s.good.Open(&e, &scratch)
	if err != nil {
		return nil, err
	}
	var asked wire.RequestView
	if err := wire.ParseRequest(pdu, &asked); err != nil {
		return nil, err
	}
	id, err := s.id(a.From)
	if err != nil {
		return nil, err
	}
	h := wire.Header{KeyID: uint64(id), UniqueID: e.Header.UniqueID, Timestamp: e.Header.Timestamp, Steering: 1}
	if a.ChangePort {
		h.Steering = 0
	}
	if a.Damage == "other-identity" {
		h.UniqueID[0] ^= 1
	}
	by := s.good
	if a.Damage == "other-key" {
		by = s.other
	}
	b, err := s.compose(by, &h, a, &asked)
	if err != nil {
		return nil, err
	}
	return s.damage(b, a.Damage, &h, request)
}

func (s *scribe) id(name string) (ident.ServerID, error) {
	server := s.trace.Server(name)
	if server == nil {
		return 0, fmt.Errorf("no server is called %q", name)
	}
	return ident.ParseServerID(server.ID)
}

// compose seals an answer before any damage.
func (s *scribe) compose(by *wire.Credential, h *wire.Header, a *conformance.Answer, asked *wire.RequestView) ([]byte, error) {
	blocks := a.Blocks
	if a.Damage == "empty" {
		blocks = &conformance.Blocks{}
	}
	if blocks != nil {
		return s.composeBlocks(by, h, blocks, wire.Layout(max(a.Layout, 0)))
	}
	var said wire.Answer
	for range asked.Guards() {
		said.Latencies = append(said.Latencies, a.Latency)
	}
	for i := range asked.Resources() {
		said.Rates = append(said.Rates, uint32(asked.Resource(i).Tokens))
		said.Deficits = append(said.Deficits, a.Deficit)
	}
	return by.AppendResponse(nil, s.sealer, h, asked, &said)
}

// composeBlocks seals an answer of any blocks: the one to a request that asked for
// them.
func (s *scribe) composeBlocks(by *wire.Credential, h *wire.Header, blocks *conformance.Blocks, l wire.Layout) ([]byte, error) {
	if l == 0 {
		l = wire.Layout2
	}
	question := wire.Request{Layout: l, DedupTTL: 1}
	var said wire.Answer
	for i := range blocks.Guards {
		question.Guards = append(question.Guards, encodeGuard(&blocks.Guards[i].Guard, l))
		said.Latencies = append(said.Latencies, blocks.Guards[i].Latency)
	}
	for i := range blocks.Resources {
		question.Resources = append(question.Resources, encodeResource(&blocks.Resources[i].Resource))
		said.Rates = append(said.Rates, 0)
		said.Deficits = append(said.Deficits, blocks.Resources[i].Deficit)
	}
	datagram, err := by.AppendRequest(nil, s.sealer, h, &question)
	if err != nil {
		return nil, err
	}
	var e wire.Envelope
	if err := wire.ParseEnvelope(datagram, &e); err != nil {
		return nil, err
	}
	var scratch wire.Scratch
	pdu, err := by.Open(&e, &scratch)
	if err != nil {
		return nil, err
	}
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		return nil, err
	}
	return by.AppendResponse(nil, s.sealer, h, &v, &said)
}

// damage does to a good answer what the word says (conformance/README.md).
func (s *scribe) damage(b []byte, word string, h *wire.Header, request []byte) ([]byte, error) {
	switch word {
	case "flip-last-byte":
		b[len(b)-1] ^= 1
	case "cut":
		b = b[:30]
	case "longer":
		b = append(b, make([]byte, wire.MaxDatagram)...)
	case "reflected":
		b = slices.Clone(request)
	case "other-mode":
		b = otherMode(b)
	case "noise":
		b = []byte("noise")
	case "a-report":
		var err error
		b, err = s.good.AppendReport(nil, s.sealer, &wire.Header{UniqueID: h.UniqueID, Steering: 1}, wire.Layout2, []wire.Observation{{}})
		if err != nil {
			return nil, err
		}
		// AppendReport writes the key's ID, which AES seals too; a report is no answer
		// whoever it says it is from.
	}
	return b, nil
}

// otherMode puts no authentication in the place of the key's, and where the key has
// none, a cookie.
func otherMode(b []byte) []byte {
	const header, none, cookie = 40, 4, 36
	size := int(b[header+2])
	if size > none {
		return slices.Concat(b[:header], []byte{0x4e, 0x41, none, 0}, b[header+size:])
	}
	return slices.Concat(b[:header], []byte{0x43, 0x41, cookie, 0}, make([]byte, cookie-4), b[header+size:])
}

func encodeGuard(g *conformance.Guard, l wire.Layout) wire.Guard {
	return wire.Guard{
		Tracker: trackerID(g.Tracker, g.TTL, g.MaxSamples, g.BufferSize, g.MinSamples, l),
		TTL:     g.TTL, MaxSamples: g.MaxSamples, BufferSize: bufferSize(g.BufferSize, l), MinSamples: g.MinSamples, Threshold: g.Threshold,
	}
}

func encodeObservation(o *conformance.Observation, l wire.Layout) wire.Observation {
	return wire.Observation{
		Tracker: trackerID(o.Tracker, o.TTL, o.MaxSamples, o.BufferSize, o.MinSamples, l),
		TTL:     o.TTL, MaxSamples: o.MaxSamples, BufferSize: bufferSize(o.BufferSize, l), MinSamples: o.MinSamples, Latency: o.Latency,
	}
}

func encodeResource(r *conformance.Resource) wire.Resource {
	return wire.Resource{Bucket: ident.Bucket(r.Bucket, r.Window, r.Limit), Window: r.Window, Rate: r.Limit, Tokens: r.Tokens}
}

func trackerID(name string, ttl, samples, buffer, least uint32, l wire.Layout) ident.ID {
	if l == wire.Layout1 {
		return ident.TrackerLayout1(name, ttl, samples, buffer, least)
	}
	return ident.Tracker(name, ttl, samples, least)
}

func bufferSize(n uint32, l wire.Layout) uint32 {
	if l == wire.Layout1 {
		return n
	}
	return 0
}

// keyFor issues the key of a play: quotas as wide as format 1 has them.
func keyFor(auth apikey.Auth, entropy io.Reader) (apikey.Key, error) {
	q := apikey.DefaultQuotas()
	q.DedupTTL = maxDedupTTL
	return apikey.New(auth, keyID, q, entropy)
}

const (
	keyID       = 7
	maxDedupTTL = 2000 // ms, the most that a key of format 1 allows
)

// serverID makes the IDs of servers A, B, …, in the order of age: all of them
// started in the second day of 2025, so that no clock takes them for the future.
func serverID(n int) string {
	const day = 24 * 60 * 60
	return strconv.FormatUint(uint64(day+n)<<23|uint64(n), 10)
}
