package wire

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"

	"github.com/weirhq/weir/apikey"
)

// Credential opens and builds the datagrams of one API key. It is immutable and safe for
// concurrent use. It prints itself without its secret.
type Credential struct {
	keyID uint64
	auth  apikey.Auth
	// secrets is a function because nothing that prints by reflection looks into one: behind a mere
	// pointer, fmt shows an enclosing struct's secret under verbs like %s.
	secrets func() *secrets
}

// secrets is what a credential must never show.
type secrets struct {
	cookie [secretSize]byte // the secret as it stands in a cookie TLV
	aead   cipher.AEAD      // AES mode only
}

// Scratch is room for one opened PDU. A worker has one and hands it to every [Credential.Open];
// the PDU of the last call lives in it until the next.
type Scratch struct {
	buf [MaxDatagram + tagSize]byte
}

// NewCredential makes the credential of a key. A zero key is an error of class [ErrInvalid].
func NewCredential(k apikey.Key) (*Credential, error) {
	if k.IsZero() {
		return nil, errNoKey
	}
	hidden := &secrets{cookie: k.Secret()}
	c := &Credential{keyID: k.ID(), auth: k.Auth(), secrets: func() *secrets { return hidden }}
	if c.auth != apikey.AuthAES {
		return c, nil
	}
	block, err := aes.NewCipher(hidden.cookie[:])
	if err != nil {
		return nil, fmt.Errorf("wire: cannot set up AES for key %d: %w", c.keyID, err)
	}
	hidden.aead, err = cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("wire: cannot set up GCM for key %d: %w", c.keyID, err)
	}
	return c, nil
}

// KeyID returns the API key's ID.
func (c *Credential) KeyID() uint64 { return c.keyID }

// Auth returns the key's authentication mode.
func (c *Credential) Auth() apikey.Auth { return c.auth }

// Open authenticates the datagram of e and returns its PDU with whatever trails it
// (docs/protocol.md, "Authentication"). The datagram is never modified: in none and cookie mode
// the PDU is a view into it, in AES mode the plaintext is in scratch, which must then not be nil.
// The errors are [ErrMode] and [ErrAuth]; none mode authenticates nothing. Secrets are compared in
// constant time. Open does not look at the header's key ID, which in a response is the server's
// ID. It does not allocate.
func (c *Credential) Open(e *Envelope, scratch *Scratch) (pdu []byte, err error) {
	if e.Auth != c.auth {
		return nil, ErrMode
	}
	switch c.auth {
	case apikey.AuthNone:
		return e.datagram[e.bodyAt:], nil
	case apikey.AuthCookie:
		if subtle.ConstantTimeCompare(e.datagram[e.authAt+tlvSize:e.bodyAt], c.secrets().cookie[:]) != 1 {
			return nil, ErrAuth
		}
		return e.datagram[e.bodyAt:], nil
	case apikey.AuthAES:
		return c.decrypt(e, scratch)
	}
	return nil, ErrMode
}

// decrypt puts the ciphertext and then the tag, which the wire has the other way round, into
// scratch and opens them in place.
func (c *Credential) decrypt(e *Envelope, scratch *Scratch) ([]byte, error) {
	tagAt := e.bodyAt - tagSize
	n := copy(scratch.buf[:], e.datagram[e.bodyAt:])
	n += copy(scratch.buf[n:], e.datagram[tagAt:e.bodyAt])
	nonce := e.datagram[tagAt-nonceSize : tagAt]
	pdu, err := c.secrets().aead.Open(scratch.buf[:0], nonce, scratch.buf[:n], e.datagram[:tagAt])
	if err != nil {
		return nil, ErrAuth
	}
	return pdu, nil
}

// String names the mode and the key ID, never the secret.
func (c *Credential) String() string {
	if c == nil {
		return "wire.Credential(nil)"
	}
	return fmt.Sprintf("wire.Credential(%s, key_id=%d)", c.auth, c.keyID)
}

// Format prints [Credential.String] for every verb and flag.
func (c *Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue is [Credential.String] for slog.
func (c *Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }
