package ident

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"golang.org/x/crypto/blake2s"
)

// ID names a bucket or a latency tracker on the wire: the first 16 bytes of a
// BLAKE2s-256 hash ("IDs" in docs/protocol.md). It is comparable and usable as
// a map key.
type ID [16]byte

// The domain strings keep IDs of different kinds apart even where their names
// and numbers are equal. The terminating NUL is part of what is hashed.
const (
	domainBucket         = "ratelimitly.resource.v1\x00"
	domainTracker        = "ratelimitly.latency-tracker.v2\x00"
	domainTrackerLayout1 = "ratelimitly.latency-tracker.v1\x00"
)

// scratchSize is the longest preimage that is hashed without an allocation: the
// longest domain, the name's length, four fields, and a name of 205 bytes.
const scratchSize = 256

// Bucket returns the ID of the bucket with this name, window in milliseconds
// and limit in tokens per window. The name is any bytes, NUL and invalid UTF-8
// included, and may be empty. No allocation for names up to 205 bytes.
func Bucket(name string, windowMs, rateLimit uint32) ID {
	var scratch [scratchSize]byte
	b := appendName(scratch[:0], domainBucket, name)
	b = binary.LittleEndian.AppendUint32(b, windowMs)
	b = binary.LittleEndian.AppendUint32(b, rateLimit)
	return sum(b)
}

// Tracker returns the layout 2 ID of the latency tracker with this name,
// lifetime of a sample in milliseconds, number of samples kept, and number of
// live samples below which it has no estimate. The name is any bytes. No
// allocation for names up to 205 bytes.
func Tracker(name string, ttlMs, maxSamples, minSamples uint32) ID {
	var scratch [scratchSize]byte
	b := appendName(scratch[:0], domainTracker, name)
	b = binary.LittleEndian.AppendUint32(b, ttlMs)
	b = binary.LittleEndian.AppendUint32(b, maxSamples)
	b = binary.LittleEndian.AppendUint32(b, minSamples)
	return sum(b)
}

// TrackerLayout1 returns the layout 1 ID of a latency tracker, whose definition
// has a buffer size (in samples) beside the fields of [Tracker]. It never
// equals a layout 2 ID. No allocation for names up to 205 bytes.
func TrackerLayout1(name string, ttlMs, maxSamples, bufferSize, minSamples uint32) ID {
	var scratch [scratchSize]byte
	b := appendName(scratch[:0], domainTrackerLayout1, name)
	b = binary.LittleEndian.AppendUint32(b, ttlMs)
	b = binary.LittleEndian.AppendUint32(b, maxSamples)
	b = binary.LittleEndian.AppendUint32(b, bufferSize)
	b = binary.LittleEndian.AppendUint32(b, minSamples)
	return sum(b)
}

// ParseID reads the form that [ID.String] writes: exactly 32 hexadecimal
// digits, of either case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != hex.EncodedLen(len(id)) {
		return ID{}, fmt.Errorf("ident: an ID is 32 hexadecimal digits, not %d characters", len(s))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("ident: %q is not an ID: %w", s, err)
	}
	return id, nil
}

// String returns the 32 lower-case hexadecimal digits of the ID.
func (id ID) String() string {
	return hex.EncodeToString(id[:])
}

// IsZero reports whether the ID is all zeros, which no definition hashes to in
// practice.
func (id ID) IsZero() bool {
	return id == ID{}
}

func appendName(b []byte, domain, name string) []byte {
	b = append(b, domain...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	return append(b, name...)
}

func sum(preimage []byte) ID {
	full := blake2s.Sum256(preimage)
	return ID(full[:len(ID{})])
}
