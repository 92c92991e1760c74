package apikey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrInvalid is wrapped by every error of [Parse] and [ParseAny] about a string
// that is no key. The text says what is wrong with it, and repeats no part of it
// but a quota's code that means nothing.
var ErrInvalid = errors.New("apikey: invalid key")

// ErrLegacy is what [Parse] returns for a well-formed key of the legacy format.
var ErrLegacy = errors.New("apikey: the key has the legacy format, which is accepted only on request: read it with ParseAny, or issue a key of format 1")

const (
	version1 = 1

	sizeVersion = 1
	sizeID      = 8
	sizeQuotas  = 4
	sizeNone    = sizeVersion + sizeID + sizeQuotas
	sizeSecret  = sizeNone + SecretSize
	sizeLegacy  = sizeID + SecretSize + 5*4

	// maxText bounds the work that a hostile string can cause. The longest key is
	// a legacy one of 112 characters.
	maxText = 128
)

// Parse reads a key of format 1 ("API keys" in docs/protocol.md). It takes
// nothing around the key, blanks and line ends included. A key of the legacy
// format gives [ErrLegacy], everything else that is no key [ErrInvalid].
func Parse(s string) (Key, error) {
	k, err := ParseAny(s)
	if err != nil {
		return Key{}, err
	}
	if k.legacy {
		return Key{}, ErrLegacy
	}
	return k, nil
}

// ParseAny reads a key of either format, otherwise like [Parse].
func ParseAny(s string) (Key, error) {
	if s == "" {
		return Key{}, invalid("it is empty")
	}
	if len(s) > maxText {
		return Key{}, invalid("it has %d characters; no key is longer than %d", len(s), maxText)
	}
	hrp, digits, err := bech32Split(s)
	if err != nil {
		return Key{}, err
	}
	auth, err := authFromPrefix(hrp)
	if err != nil {
		return Key{}, err
	}
	payload, err := fromDigits(digits)
	if err != nil {
		return Key{}, err
	}
	return fromPayload(auth, payload)
}

// Encode returns the key's text, which holds the secret: the only way to get
// it. It is in lower case, and empty for the zero Key.
func (k Key) Encode() string {
	if k.IsZero() {
		return ""
	}
	return bech32Encode(k.auth.prefix(), k.payload())
}

func (k Key) payload() []byte {
	secret := k.Secret()
	b := make([]byte, 0, sizeLegacy)
	if k.legacy {
		b = binary.LittleEndian.AppendUint64(b, k.id)
		b = append(b, secret[:]...)
		for _, v := range [...]uint32{k.quotas.RateBuckets, k.quotas.LatencyServices, k.quotas.MetricsLabels, k.quotas.LatencyBufferSize, k.quotas.DedupTTL} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	b = append(b, version1)
	b = binary.LittleEndian.AppendUint64(b, k.id)
	if k.auth != AuthNone {
		b = append(b, secret[:]...)
	}
	return binary.LittleEndian.AppendUint32(b, k.quotas.word())
}

func authFromPrefix(hrp string) (Auth, error) {
	for _, a := range [...]Auth{AuthNone, AuthCookie, AuthAES} {
		if hrp == a.prefix() {
			return a, nil
		}
	}
	return 0, invalid("the prefix is none of rl-none, rl-cookie and rl-aes")
}

// fromPayload tells the formats apart by the payload's length.
func fromPayload(auth Auth, b []byte) (Key, error) {
	switch {
	case auth == AuthNone && len(b) == sizeLegacy:
		return Key{}, invalid("there are no legacy keys of mode none")
	case auth == AuthNone && len(b) != sizeNone:
		return Key{}, invalid("the payload of a key of mode none has %d bytes, not %d", sizeNone, len(b))
	case auth == AuthNone || len(b) == sizeSecret:
		return fromVersion1(auth, b)
	case len(b) == sizeLegacy:
		return fromLegacy(auth, b), nil
	}
	return Key{}, invalid("the payload of a key of mode %v has %d bytes, or %d in the legacy format, not %d", auth, sizeSecret, sizeLegacy, len(b))
}

func fromVersion1(auth Auth, b []byte) (Key, error) {
	if b[0] != version1 {
		// The byte stays unsaid: in a format of another day it may be a secret's.
		return Key{}, invalid("its format version is not %d, the only one that this program knows", version1)
	}
	q, err := quotasFromWord(binary.LittleEndian.Uint32(b[len(b)-sizeQuotas:]))
	if err != nil {
		return Key{}, err
	}
	k := Key{auth: auth, id: binary.LittleEndian.Uint64(b[sizeVersion:]), quotas: q}
	if auth == AuthNone {
		return k, nil
	}
	return k.withSecret([SecretSize]byte(b[sizeVersion+sizeID:])), nil
}

func fromLegacy(auth Auth, b []byte) Key {
	quota := func(i int) uint32 {
		return binary.LittleEndian.Uint32(b[sizeID+SecretSize+4*i:])
	}
	k := Key{
		auth:   auth,
		legacy: true,
		id:     binary.LittleEndian.Uint64(b),
		quotas: Quotas{
			RateBuckets:       quota(0),
			LatencyServices:   quota(1),
			MetricsLabels:     quota(2),
			LatencyBufferSize: quota(3),
			DedupTTL:          quota(4),
			RateWindow:        math.MaxUint32,
		},
	}
	return k.withSecret([SecretSize]byte(b[sizeID:]))
}

// invalid builds an error about a string that is no key. Its arguments are
// positions, lengths, modes and quota codes only, never characters or bytes.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
