package apikey

import (
	"crypto/subtle"
	"fmt"
	"io"
	"math"
)

// SecretSize is the length of a key's secret in bytes.
const SecretSize = 32

// Key is one API key. The zero value is no key ([Key.IsZero]).
//
// A Key is immutable and safe for concurrent use. It prints itself redacted
// everywhere and cannot be compared with ==; use [Key.Equal].
type Key struct {
	auth   Auth
	legacy bool
	id     uint64
	quotas Quotas
	// secret is a function so that no printer that works by reflection, however
	// deep it looks, can reach the bytes. It also makes Key incomparable.
	secret func() [SecretSize]byte
}

// New issues a key of format 1 for the tenant id, with a secret read from
// entropy, which must be a cryptographic source. A key of [AuthNone] has no
// secret and reads nothing. Quotas that the format cannot hold are an error
// ([Quotas.Validate]); they are never rounded.
func New(auth Auth, id uint64, q Quotas, entropy io.Reader) (Key, error) {
	if !auth.valid() {
		return Key{}, fmt.Errorf("apikey: %v is no authentication mode; use AuthNone, AuthCookie or AuthAES", auth)
	}
	if err := q.Validate(); err != nil {
		return Key{}, err
	}
	k := Key{auth: auth, id: id, quotas: q}
	return k.draw(entropy)
}

// NewLegacy issues a key of the legacy format, for clients older than August
// 2026, which take nothing else. The format has no [AuthNone] and no window
// quota, so q.RateWindow must be 1<<32-1; the other quotas may have any value.
// entropy must be a cryptographic source.
func NewLegacy(auth Auth, id uint64, q Quotas, entropy io.Reader) (Key, error) {
	if auth != AuthCookie && auth != AuthAES {
		return Key{}, fmt.Errorf("apikey: a legacy key cannot have the authentication mode %v; use AuthCookie or AuthAES", auth)
	}
	if q.RateWindow != math.MaxUint32 {
		return Key{}, fmt.Errorf("apikey: quota RateWindow: a legacy key cannot limit the window to %d ms; use %d (unlimited)", q.RateWindow, uint32(math.MaxUint32))
	}
	k := Key{auth: auth, id: id, quotas: q, legacy: true}
	return k.draw(entropy)
}

// ID returns the key ID, which names the tenant.
func (k Key) ID() uint64 { return k.id }

// Auth returns how datagrams under this key are authenticated, or 0 for the
// zero Key.
func (k Key) Auth() Auth { return k.auth }

// Quotas returns the tenant's quotas. RateWindow of a legacy key is 1<<32-1.
func (k Key) Quotas() Quotas { return k.quotas }

// Legacy reports whether the key has the legacy format.
func (k Key) Legacy() bool { return k.legacy }

// IsZero reports whether k is the zero Key, which is no key.
func (k Key) IsZero() bool { return k.auth == 0 }

// Secret returns a copy of the secret, which is all zeros for [AuthNone] and
// for the zero Key. Whoever asks for it must not print it.
func (k Key) Secret() [SecretSize]byte {
	if k.secret == nil {
		return [SecretSize]byte{}
	}
	return k.secret()
}

// Equal reports whether both keys are the same in every part, format included.
// It takes the same time wherever secrets differ.
func (k Key) Equal(other Key) bool {
	a, b := k.Secret(), other.Secret()
	same := subtle.ConstantTimeCompare(a[:], b[:]) == 1
	return same && k.auth == other.auth && k.legacy == other.legacy && k.id == other.id && k.quotas == other.quotas
}

// draw returns k with a fresh secret where its mode has one.
func (k Key) draw(entropy io.Reader) (Key, error) {
	if k.auth == AuthNone {
		return k, nil
	}
	var secret [SecretSize]byte
	if _, err := io.ReadFull(entropy, secret[:]); err != nil {
		return Key{}, fmt.Errorf("apikey: reading %d bytes of entropy for the secret: %w", SecretSize, err)
	}
	return k.withSecret(secret), nil
}

func (k Key) withSecret(secret [SecretSize]byte) Key {
	k.secret = func() [SecretSize]byte { return secret }
	return k
}
