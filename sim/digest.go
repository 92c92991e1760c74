package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
)

// Digest is a recorder that boils a run down to a hash of all its records, every field of each but
// the memory of engines, which differs between machines. Runs with the same digest are the same.
// Make one with [NewDigest].
type Digest struct {
	hash hash.Hash
	b    []byte
}

// NewDigest returns the digest of nothing.
func NewDigest() *Digest { return &Digest{hash: sha256.New()} }

// String returns the hash of what was recorded so far, in hexadecimal.
func (g *Digest) String() string { return hex.EncodeToString(g.hash.Sum(nil)) }

// Record adds a record.
func (g *Digest) Record(r *Record) {
	g.b = g.b[:0]
	numbers(g, r.Client, r.Server, r.Choice, r.Round, r.Copy, r.Worker, r.Queue, r.Service, r.Fault)
	numbers(g, uint8(r.Kind), uint8(r.Send), uint8(r.Cause), uint8(r.Verdict), uint8(r.Received))
	numbers(g, int64(r.At), int64(r.Elapsed))
	numbers(g, uint64(r.ID), r.Request)
	g.flags(r.Answer, r.Late, r.Keep, r.Granted, r.Refused, r.Up)
	g.b = r.Port.AppendTo(g.b)
	g.text(string(r.Payload))
	g.text(r.Key.Encode())
	if r.Completion != nil {
		g.completion(r.Completion)
	}
	if r.Lookup != nil {
		numbers(g, uint64(r.Lookup.ID), uint64(r.Lookup.Kind))
		g.text(r.Lookup.Name)
	}
	for i := range r.Servers {
		numbers(g, r.Servers[i].ID)
		for _, a := range r.Servers[i].Endpoints {
			g.b = a.AppendTo(g.b)
		}
	}
	if r.Engine != nil {
		g.engine(r.Engine)
	}
	if r.Err != nil {
		g.text(r.Err.Error())
	}
	g.hash.Write(g.b)
}

func (g *Digest) completion(c *core.Completion) {
	numbers(g, uint64(c.Outcome), uint64(c.Server), uint64(c.Elapsed))
	numbers(g, c.Round, c.Replays, c.Seen.Servers, c.Seen.Endpoints)
	g.flags(c.KeepPort, c.Oldest, c.Final)
	for i := range c.Guards {
		numbers(g, c.Guards[i].Latency)
		g.flags(c.Guards[i].Passed)
	}
	for i := range c.Resources {
		numbers(g, c.Resources[i].ActualRate, uint32(c.Resources[i].Deficit))
	}
	numbers(g, c.Seen.SendFailures)
	numbers(g, c.Seen.Datagrams[:]...)
}

func (g *Digest) engine(s *limiter.Stats) {
	numbers(g, s.Buckets, s.Groups, s.Trackers, s.Samples, s.Pacers, s.Pacing, s.Identities, s.Answers)
	numbers(g, s.Degraded, s.AnswersLost, s.RefusedBlocks, s.Shadowed, s.Trips, s.DroppedBlocks, s.Floor, s.Latest)
}

// numbers adds whole numbers of one type, each in 64 bits.
func numbers[N ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](g *Digest, ns ...N) {
	for _, n := range ns {
		g.b = binary.LittleEndian.AppendUint64(g.b, uint64(n))
	}
}

func (g *Digest) flags(flags ...bool) {
	for _, f := range flags {
		b := byte(0)
		if f {
			b = 1
		}
		g.b = append(g.b, b)
	}
}

// text adds a text with its length, so that no two texts in a row read like two others.
func (g *Digest) text(s string) {
	g.b = binary.LittleEndian.AppendUint64(g.b, uint64(len(s)))
	g.b = append(g.b, s...)
}
