package core

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// modelDatagram is an answer to a request, and what is wrong with it.
type modelDatagram struct {
	flaw       modelFlaw
	server     ident.ServerID
	changePort bool
	keep       uint8 // what says so if not
	socket     SocketID
	guards     []said
	resources  []said
}

// modelFlaw is what is wrong with a datagram.
type modelFlaw uint8

const (
	flawNone      modelFlaw = iota
	flawNoise               // no datagram at all
	flawIdentity            // answers a request that nobody made
	flawMode                // authenticated in another mode
	flawForged              // damaged, or sealed with another secret
	flawReflected           // our own request
	flawReport              // a report under the request's identity
	flawBroken              // authentic, but its blocks are cut or laid out otherwise
	flawMismatch            // does not answer what was asked

	flaws = iota
)

// flawVerdicts is the verdict on each flaw while the request is known.
var flawVerdicts = [flaws]DatagramVerdict{
	flawMode: DatagramMode, flawForged: DatagramForged, flawReflected: DatagramNotAnswer, flawReport: DatagramNotAnswer,
	flawBroken: DatagramMalformed, flawMismatch: DatagramMismatch,
}

var (
	otherBucket  = bucket("another")
	otherTracker = guard("another", 50)
)

// drawDatagram draws an answer to a request and its bytes.
func (w *world) drawDatagram(t *rapid.T, r *modelRequest) (*modelDatagram, []byte) {
	flaw := w.drawFlaw(t, r)
	d := &modelDatagram{
		flaw:       flaw,
		server:     w.drawServer(t, r, flaw == flawNone),
		changePort: rapid.IntRange(0, 3).Draw(t, "change port") == 3,
		keep:       rapid.SampledFrom([]uint8{1, 2, 255}).Draw(t, "keep port"),
		socket:     w.drawSocket(t, r),
	}
	for _, g := range r.ask.Guards {
		if rapid.IntRange(0, 5).Draw(t, "own threshold") == 5 {
			g.Threshold = rapid.SampledFrom([]uint32{0, 20, 49, 51}).Draw(t, "threshold")
		}
		d.guards = append(d.guards, said{guard: g, number: rapid.SampledFrom([]uint32{0, 19, 20, 49, 50}).Draw(t, "latency")})
	}
	for _, b := range r.ask.Resources {
		d.resources = append(d.resources, said{
			resource: b, rate: rapid.Uint32Range(0, 200).Draw(t, "rate"), number: rapid.SampledFrom([]uint32{0, 0, 0, 1, 65535}).Draw(t, "deficit"),
		})
	}
	d.guards, d.resources = rotated(t, d.guards), rotated(t, d.resources)
	if d.flaw == flawMismatch {
		d.spoil(t)
	}
	return d, w.damaged(t, r, d, w.sealed(r, d))
}

// rotated moves blocks about.
func rotated(t *rapid.T, blocks []said) []said {
	if len(blocks) < 2 {
		return blocks
	}
	n := rapid.IntRange(0, len(blocks)-1).Draw(t, "rotate")
	return slices.Concat(blocks[n:], blocks[:n])
}

// drawFlaw draws a flaw that a datagram to this request can have.
func (w *world) drawFlaw(t *rapid.T, r *modelRequest) modelFlaw {
	flaw := modelFlaw(max(0, rapid.IntRange(-8, flaws-1).Draw(t, "flaw")))
	auth := w.r.credential.Auth()
	switch {
	case flaw == flawForged && auth == apikey.AuthNone:
		return flawNoise // nothing can be forged where nothing is authentic
	case flaw == flawBroken && auth == apikey.AuthAES && len(r.ask.Guards) == 0:
		return flawMismatch // what is cut is not authentic, and without guards the layouts coincide
	}
	return flaw
}

// drawServer draws one that was asked or, for nothing else to be wrong with the
// datagram, any.
func (w *world) drawServer(t *rapid.T, r *modelRequest, stranger bool) ident.ServerID {
	if stranger && rapid.IntRange(0, 5).Draw(t, "any server") == 5 {
		return serverID(rapid.IntRange(0, modelServers-1).Draw(t, "server"))
	}
	return r.servers[rapid.IntRange(0, len(r.servers)-1).Draw(t, "server")].ID
}

// drawSocket draws one that the request can have been sent from.
func (w *world) drawSocket(t *rapid.T, r *modelRequest) SocketID {
	var open []SocketID
	for _, s := range w.sockets {
		if !s.retired || s.until > r.since {
			open = append(open, s.id)
		}
	}
	return rapid.SampledFrom(open).Draw(t, "socket")
}

// spoil makes the answer one to another question.
func (d *modelDatagram) spoil(t *rapid.T) {
	blocks, other := &d.resources, said{resource: otherBucket}
	if len(d.resources) == 0 {
		blocks, other = &d.guards, said{guard: otherTracker}
	}
	switch rapid.IntRange(0, 3).Draw(t, "mismatch") {
	case 0:
		d.guards, d.resources = nil, nil
	case 1:
		*blocks = (*blocks)[1:]
	case 2:
		*blocks = append(slices.Clone(*blocks), (*blocks)[0])
	case 3:
		*blocks = slices.Clone(*blocks)
		(*blocks)[len(*blocks)-1] = other
	}
}

// sealed is the datagram of an answer without a flaw, but for its blocks.
func (w *world) sealed(r *modelRequest, d *modelDatagram) []byte {
	layout := w.c.cfg.Layout
	if d.flaw == flawBroken && len(r.ask.Guards) > 0 {
		layout = wire.Layout1 + wire.Layout2 - layout
	}
	h := wire.Header{KeyID: uint64(d.server), UniqueID: r.identity(), Timestamp: 1, Steering: d.keep}
	if d.changePort {
		h.Steering = 0
	}
	if d.flaw == flawIdentity {
		h.UniqueID[3] ^= 1
	}
	if d.flaw == flawReport {
		b, err := w.r.credential.AppendReport(nil, w.r.sealer, &h, layout, observations(1))
		if err != nil {
			w.tb.Fatal(err)
		}
		return b
	}
	return w.r.composeHeaded(w.tb, layout, &h, d.guards, d.resources)
}

// damaged does to a datagram what its flaw says.
func (w *world) damaged(t *rapid.T, r *modelRequest, d *modelDatagram, b []byte) []byte {
	const header = 40
	auth := w.r.credential.Auth()
	switch d.flaw {
	case flawNoise:
		switch rapid.IntRange(0, 2).Draw(t, "noise") {
		case 0:
			return nil
		case 1:
			return b[:rapid.IntRange(0, header+3).Draw(t, "cut")]
		}
		return append(b, make([]byte, wire.MaxDatagram)...)
	case flawMode:
		other := []byte{0x4e, 0x41, 4, 0}
		if auth == apikey.AuthNone {
			other = append([]byte{0x43, 0x41, 36, 0}, make([]byte, 32)...)
		}
		return slices.Concat(b[:header], other, b[header+authSize(auth):])
	case flawForged:
		at := header + 4 // the cookie
		if auth == apikey.AuthAES {
			at = rapid.SampledFrom([]int{4, 35, 36, header + 4, header + 31, len(b) - 1}).Draw(t, "damage at")
		}
		b[at] ^= 0x80
	case flawReflected:
		return slices.Clone(r.datagram)
	case flawBroken:
		if len(r.ask.Guards) == 0 {
			return broken(t, b, header+authSize(auth))
		}
	case flawNone:
		if auth != apikey.AuthAES && rapid.Bool().Draw(t, "trailing bytes") {
			return append(b, "trailing"...)
		}
	}
	return b
}

// broken spoils a datagram's PDU, which begins at this place.
func broken(t *rapid.T, b []byte, pdu int) []byte {
	if rapid.IntRange(0, 3).Draw(t, "unknown PDU") == 3 {
		b[pdu] ^= 0xff
		return b
	}
	return b[:len(b)-rapid.IntRange(1, len(b)-pdu).Draw(t, "cut")]
}

// authSize is the length of the authentication TLV.
func authSize(a apikey.Auth) int {
	return map[apikey.Auth]int{apikey.AuthNone: 4, apikey.AuthCookie: 36, apikey.AuthAES: 32}[a]
}

func (r *modelRequest) identity() wire.UniqueID { return wire.UniqueID(r.datagram[12:28]) }

// checkFirst holds a request's datagram against what was asked.
func (w *world) checkFirst(t *rapid.T, r *modelRequest, wall int64) {
	h, pdu := w.r.open(w.tb, r.datagram)
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		t.Fatal(err)
	}
	ms := uint32((w.m.plan.horizon() + 999_999) / 1_000_000)
	if h.Timestamp != uint64(max(wall, 0)) || v.DedupTTL != ms || string(v.Label()) != r.ask.Label ||
		h.KeyID != w.r.credential.KeyID() || v.Guards() != len(r.ask.Guards) || v.Resources() != len(r.ask.Resources) {
		t.Fatalf("datagram with header %+v, TTL %d, label %q, %d guards, %d resources; asked was %+v at %d", h, v.DedupTTL, v.Label(), v.Guards(), v.Resources(), r.ask, wall)
	}
	for i := range r.ask.Guards {
		g := r.ask.Guards[i]
		if got := v.Guard(i); got != g {
			t.Fatalf("guard %d is sent as %+v, want %+v", i, got, g)
		}
	}
	for i := range r.ask.Resources {
		if got := v.Resource(i); got != r.ask.Resources[i] {
			t.Fatalf("resource %d is sent as %+v, want %+v", i, got, r.ask.Resources[i])
		}
	}
}
