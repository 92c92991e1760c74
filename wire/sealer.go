package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Sealer draws the nonces of AES mode (docs/protocol.md, "Authentication"): 8 bytes of entropy and
// a counter in the other 4, the 8 drawn anew when the counter wraps. Each worker or socket has one
// of its own. It is for one goroutine at a time, and must not be copied or stored: a copy would
// repeat nonces, which breaks AES-GCM. `go vet` reports a copy, and a copy refuses to seal.
type Sealer struct {
	_       noCopy
	self    *Sealer // tells a copy from the original
	entropy io.Reader
	used    uint64 // nonces drawn under this prefix, at most 1<<32
	prefix  [noncePrefix]byte
	fresh   [noncePrefix]byte // where a new prefix is read to
	nonce   [nonceSize]byte
}

const (
	noncePrefix   = 8
	noncesPerDraw = 1 << 32
)

// NewSealer makes a sealer that reads from a cryptographic source: 8 bytes now, 8 more at every
// 2^32 seals. A source that fails, or gives the same bytes again, is an [ErrEntropy].
func NewSealer(entropy io.Reader) (*Sealer, error) {
	if entropy == nil {
		return nil, fmt.Errorf("%w: there is none", ErrEntropy)
	}
	s := &Sealer{entropy: entropy}
	s.self = s
	if _, err := io.ReadFull(entropy, s.prefix[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEntropy, err)
	}
	return s, nil
}

// next returns a nonce that this sealer never gave before. It is valid until the next call.
func (s *Sealer) next() (*[nonceSize]byte, error) {
	if s == nil {
		return nil, errNoSealer
	}
	if s.self != s {
		return nil, errSealerCopied
	}
	if s.used >= noncesPerDraw {
		if err := s.redraw(); err != nil {
			return nil, err
		}
	}
	copy(s.nonce[:], s.prefix[:])
	binary.LittleEndian.PutUint32(s.nonce[noncePrefix:], uint32(s.used))
	s.used++
	return &s.nonce, nil
}

// redraw starts counting again under a new prefix. A source that repeats the old one is broken.
func (s *Sealer) redraw() error {
	if _, err := io.ReadFull(s.entropy, s.fresh[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrEntropy, err)
	}
	if s.fresh == s.prefix {
		return fmt.Errorf("%w: it gave the same bytes again", ErrEntropy)
	}
	s.prefix = s.fresh
	s.used = 0
	return nil
}

// noCopy makes vet's copylocks check report a copy of what holds it.
type noCopy struct{}

// Lock and Unlock are what that check looks for.
func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
