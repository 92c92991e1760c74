package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// A stream is where one consumer of chance draws from. It is told by the run's seed and the
// consumer's name, so that what one consumer draws shifts nothing for the others. Where the
// number of draws before depends on what clients do, a consumer does not draw in turn but for a
// thing, such as the first datagram of a client's fifth request to a server: that fares alike
// under every policy, whatever else is sent.
type stream struct{ a, b uint64 }

// newStream returns the stream of a consumer.
func newStream(seed uint64, name string) stream {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	sum := sha256.Sum256(append(b[:], name...))
	return stream{binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])}
}

// inTurn returns the source for a consumer that draws in turn.
func (s stream) inTurn() rand.PCG { return s.of(0) }

// of returns the source of what is drawn for one thing.
func (s stream) of(thing uint64) (p rand.PCG) {
	a := scramble(s.a + thing)
	p.Seed(a, scramble(s.b^a))
	return p
}

// word returns the one word that is drawn for a thing.
func (s stream) word(thing uint64) uint64 {
	p := s.of(thing)
	return p.Uint64()
}

// thing names what a draw is for, by numbers.
func thing(numbers ...uint64) uint64 {
	t := uint64(len(numbers))
	for _, n := range numbers {
		t = scramble(t*0x9e3779b97f4a7c15 + n)
	}
	return t
}

// scramble maps words to words, one to one, so that each bit of the outcome depends on all bits
// of x (the finalizer of splitmix64).
func scramble(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// entropy is a source of bytes for keys, identities and nonces.
type entropy struct{ rand.PCG }

func newEntropy(seed uint64, name string) *entropy {
	return &entropy{newStream(seed, name).inTurn()}
}

// Read fills b and never fails.
func (e *entropy) Read(b []byte) (int, error) {
	n := len(b)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, e.Uint64())
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], e.Uint64())
		copy(b, last[:])
	}
	return n, nil
}

// happens tells whether a word makes something come true that has chance p.
func (p PerMillion) happens(word uint64) bool { return share(word, million) < uint64(p) }

const million = 1_000_000
