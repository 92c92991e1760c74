package limiter

import (
	"encoding/binary"
	"math/bits"
)

// hasher is SipHash-2-4 with 64-bit output under one key: a keyed hash whose collisions nobody can
// find who does not know the key. IDs and identities are the client's to choose, so every table is
// hashed with it.
type hasher struct{ k0, k1 uint64 }

func newHasher(key [16]byte) hasher {
	return hasher{binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])}
}

// derive returns a hasher under another key, which follows from this one and a label.
func (h hasher) derive(label uint64) hasher {
	return hasher{h.sum3(label, 0, 0), h.sum3(label, 1, 0)}
}

// sum returns the hash of b.
func (h hasher) sum(b []byte) uint64 {
	v0, v1, v2, v3 := h.start()
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^m)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	return sipFinish(v0, v1, v2, v3, last)
}

// sum3 returns the hash of three words, as [hasher.sum] does of their 24 bytes in little-endian
// order.
func (h hasher) sum3(a, b, c uint64) uint64 {
	v0, v1, v2, v3 := h.start()
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^a)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0^a, v1, v2, v3^b)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0^b, v1, v2, v3^c)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return sipFinish(v0^c, v1, v2, v3, 24<<56)
}

// start returns the state before the first word. The constants are of the SipHash definition.
func (h hasher) start() (v0, v1, v2, v3 uint64) {
	return h.k0 ^ 0x736f6d6570736575, h.k1 ^ 0x646f72616e646f6d,
		h.k0 ^ 0x6c7967656e657261, h.k1 ^ 0x7465646279746573
}

// sipFinish takes in the last word and returns the hash.
func sipFinish(v0, v1, v2, v3, last uint64) uint64 {
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^last)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0^last, v1, v2^0xff, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (w0, w1, w2, w3 uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}
