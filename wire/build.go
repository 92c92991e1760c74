package wire

import (
	"encoding/binary"

	"github.com/weirhq/weir/apikey"
)

// BufferSize is the free capacity with which the Append methods of [Credential] never allocate: a
// whole datagram, and the room that sealing uses for a moment.
const BufferSize = MaxDatagram + tagSize

// AppendRequest appends the datagram of a request to dst and returns the longer slice
// (docs/protocol.md, "PDU", "Layouts"). The header's key ID is the credential's, whatever h says;
// every guard's latency is written 0. In AES mode s must not be nil, and one nonce is used up.
// Errors are [ErrTooLarge], [ErrEntropy] or of class [ErrInvalid]; dst is then returned as it was.
func (c *Credential) AppendRequest(dst []byte, s *Sealer, h *Header, r *Request) ([]byte, error) {
	if err := c.check(r.Layout); err != nil {
		return dst, err
	}
	if r.DedupTTL == 0 {
		return dst, errNoTTL
	}
	size := RequestSize(c.auth, r.Layout, len(r.Guards), len(r.Resources), len(r.Label))
	if size > MaxDatagram {
		return dst, ErrTooLarge
	}
	b, pduAt, err := c.begin(dst, s, h, c.keyID)
	if err != nil {
		return dst, err
	}
	b = appendPDU(b, typeRequest, len(dst)+size-pduAt, r.DedupTTL, len(r.Guards), len(r.Resources))
	for i := range r.Guards {
		b = appendGuard(b, r.Layout, &r.Guards[i])
	}
	for i := range r.Resources {
		b = appendResource(b, &r.Resources[i])
	}
	b = appendLabel(b, r.Label)
	return c.seal(b, len(dst), pduAt), nil
}

// AppendReport appends the datagram of a latency report in layout l to dst and returns the longer
// slice. It holds at most [MaxObservations]. For header, sealer and errors see
// [Credential.AppendRequest].
func (c *Credential) AppendReport(dst []byte, s *Sealer, h *Header, l Layout, obs []Observation) ([]byte, error) {
	if err := c.check(l); err != nil {
		return dst, err
	}
	if len(obs) > MaxObservations(c.auth, l) {
		return dst, ErrTooLarge
	}
	size := reportSize(c.auth, l, len(obs))
	b, pduAt, err := c.begin(dst, s, h, c.keyID)
	if err != nil {
		return dst, err
	}
	b = appendPDU(b, typeReport, len(dst)+size-pduAt, 0, len(obs), 0)
	for i := range obs {
		b = appendObservation(b, l, &obs[i])
	}
	return c.seal(b, len(dst), pduAt), nil
}

// AppendResponse appends the datagram of the answer a to request v, in the request's layout and
// block order, to dst and returns the longer slice (docs/protocol.md, "Answers"). h.KeyID is the
// answering server's ID, h.UniqueID the request's. v's bytes must not lie in dst's free capacity.
// An answer whose numbers are not as many as v's blocks is an error of class [ErrInvalid]; for
// sealer and other errors see [Credential.AppendRequest]. The datagram is never longer than the
// request was.
func (c *Credential) AppendResponse(dst []byte, s *Sealer, h *Header, v *RequestView, a *Answer) ([]byte, error) {
	if err := c.check(v.layout); err != nil {
		return dst, err
	}
	guards, resources := v.Guards(), v.Resources()
	if len(a.Latencies) != guards || len(a.Rates) != resources || len(a.Deficits) != resources {
		return dst, errAnswer
	}
	size := RequestSize(c.auth, v.layout, guards, resources, 0)
	if size > MaxDatagram {
		return dst, ErrTooLarge
	}
	b, pduAt, err := c.begin(dst, s, h, h.KeyID)
	if err != nil {
		return dst, err
	}
	b = appendPDU(b, typeResponse, len(dst)+size-pduAt, 0, guards, resources)
	b = append(b, v.guards...)
	for i, end := 0, len(b)-len(v.guards); i < guards; i++ {
		end += v.layout.guardSize()
		binary.LittleEndian.PutUint32(b[end-latencyEnd:], a.Latencies[i])
	}
	b = append(b, v.resources...)
	for i, at := 0, len(b)-len(v.resources); i < resources; i++ {
		binary.LittleEndian.PutUint32(b[at+rateAt:], a.Rates[i])
		binary.LittleEndian.PutUint16(b[at+tokensAt:], a.Deficits[i])
		binary.LittleEndian.PutUint16(b[at+resourcePadding:], 0)
		at += resourceSize
	}
	return c.seal(b, len(dst), pduAt), nil
}

// check refuses what every Append refuses.
func (c *Credential) check(l Layout) error {
	if c == nil || c.secrets == nil {
		return errCredential
	}
	if l != Layout1 && l != Layout2 {
		return errNoLayout
	}
	return nil
}

// begin appends the tenant header and the authentication TLV, in AES mode with a nonce and room
// for the tag, and tells where the PDU begins.
func (c *Credential) begin(b []byte, s *Sealer, h *Header, keyID uint64) (_ []byte, pduAt int, err error) {
	var nonce *[nonceSize]byte
	if c.auth == apikey.AuthAES {
		if nonce, err = s.next(); err != nil {
			return nil, 0, err
		}
	}
	le := binary.LittleEndian
	b = le.AppendUint16(b, typeHeader)
	b = le.AppendUint16(b, headerSize)
	b = le.AppendUint64(b, keyID)
	b = append(b, h.UniqueID[:]...)
	b = le.AppendUint64(b, h.Timestamp)
	b = append(b, h.Steering, h.Mgmt, 0, 0)
	switch c.auth {
	case apikey.AuthCookie:
		b = le.AppendUint16(b, typeCookie)
		b = le.AppendUint16(b, cookieSize)
		b = append(b, c.secrets().cookie[:]...)
	case apikey.AuthAES:
		b = le.AppendUint16(b, typeAES)
		b = le.AppendUint16(b, aesSize)
		b = append(b, nonce[:]...)
		b = append(b, make([]byte, tagSize)...)
	default:
		b = le.AppendUint16(b, typeNone)
		b = le.AppendUint16(b, noneSize)
	}
	return b, len(b), nil
}

// seal encrypts the PDU in place in AES mode. GCM leaves the tag behind the ciphertext; the wire
// wants it before.
func (c *Credential) seal(b []byte, start, pduAt int) []byte {
	if c.auth != apikey.AuthAES {
		return b
	}
	end := len(b)
	tagAt := pduAt - tagSize
	b = append(b, make([]byte, tagSize)...)
	c.secrets().aead.Seal(b[pduAt:pduAt], b[tagAt-nonceSize:tagAt], b[pduAt:end], b[start:tagAt])
	copy(b[tagAt:pduAt], b[end:])
	return b[:end]
}
