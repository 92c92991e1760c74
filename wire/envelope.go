package wire

import (
	"encoding/binary"

	"github.com/weirhq/weir/apikey"
)

// Envelope is a datagram taken apart: tenant header and authentication, and a PDU that is not yet
// opened. It is a view: it holds the bytes that were given to [ParseEnvelope].
type Envelope struct {
	Header Header
	Auth   apikey.Auth

	datagram []byte
	authAt   int // where the authentication TLV begins: the tenant header's size
	bodyAt   int // where PDU or ciphertext begins
}

// ParseEnvelope reads the tenant header and the frame of the authentication TLV of datagram b into
// e, which keeps b until the next call (docs/protocol.md, "Tenant header", "Authentication"). It
// authenticates nothing: that is [Credential.Open]. An error is of class [ErrMalformed], and e is
// then zero. It does not allocate.
func ParseEnvelope(b []byte, e *Envelope) error {
	*e = Envelope{}
	if len(b) > MaxDatagram {
		return errDatagramLong
	}
	if len(b) < tlvSize {
		return errHeaderCut
	}
	if binary.LittleEndian.Uint16(b) != typeHeader {
		return errHeaderType
	}
	size := int(binary.LittleEndian.Uint16(b[2:]))
	if size < headerSize || size > len(b) {
		return errHeaderSize
	}
	auth, length, err := parseAuth(b[size:])
	if err != nil {
		return err
	}
	e.Header = Header{
		KeyID:     binary.LittleEndian.Uint64(b[4:]),
		UniqueID:  UniqueID(b[12:28]),
		Timestamp: binary.LittleEndian.Uint64(b[28:]),
		Steering:  b[36],
		Mgmt:      b[37],
	}
	e.Auth = auth
	e.datagram = b
	e.authAt = size
	e.bodyAt = size + length
	return nil
}

// Datagram returns the bytes that the envelope is a view of.
func (e *Envelope) Datagram() []byte { return e.datagram }

// HeaderSize returns the tenant header's size in bytes: 40, or more when the sender wrote a larger
// one.
func (e *Envelope) HeaderSize() int { return e.authAt }

// Nonce returns the AES-GCM nonce, nil in the other modes.
func (e *Envelope) Nonce() []byte {
	if e.Auth != apikey.AuthAES {
		return nil
	}
	return e.datagram[e.authAt+tlvSize:][:nonceSize:nonceSize]
}

// Sealed returns what follows the authentication TLV, unopened: the ciphertext in AES mode, else
// the PDU and what trails it.
func (e *Envelope) Sealed() []byte { return e.datagram[e.bodyAt:] }

// parseAuth reads the frame of the authentication TLV that b begins with.
func parseAuth(b []byte) (mode apikey.Auth, size int, err error) {
	if len(b) < tlvSize {
		return 0, 0, errAuthCut
	}
	switch binary.LittleEndian.Uint16(b) {
	case typeNone:
		mode, size = apikey.AuthNone, noneSize
	case typeCookie:
		mode, size = apikey.AuthCookie, cookieSize
	case typeAES:
		mode, size = apikey.AuthAES, aesSize
	default:
		return 0, 0, errAuthType
	}
	if int(binary.LittleEndian.Uint16(b[2:])) != size {
		return 0, 0, errAuthSize
	}
	if size > len(b) {
		return 0, 0, errAuthCut
	}
	return mode, size, nil
}

// authSize returns the length of a mode's authentication TLV.
func authSize(a apikey.Auth) int {
	switch a {
	case apikey.AuthCookie:
		return cookieSize
	case apikey.AuthAES:
		return aesSize
	}
	return noneSize
}
