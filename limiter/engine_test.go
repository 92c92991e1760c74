package limiter

import (
	"encoding/binary"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
	"pgregory.net/rapid"
)

// traffic draws the datagrams of a test: few buckets, trackers and identities, so that they meet.
type traffic struct {
	c     Config
	ids   uint64
	spent map[uint64]bool // no two identities are spent at once, so that the first is one
	past  []sent
}

func (f *traffic) draw(t *rapid.T, now Time) sent {
	if len(f.past) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		s := f.past[rapid.IntRange(max(0, len(f.past)-20), len(f.past)-1).Draw(t, "which")]
		return f.altered(t, s, now)
	}
	f.ids++
	s := sent{report: rapid.IntRange(0, 3).Draw(t, "report") == 0}
	binary.LittleEndian.PutUint64(s.h.UniqueID[:], f.ids)
	layout := rapid.SampledFrom([]wire.Layout{wire.Layout1, wire.Layout2}).Draw(t, "layout")
	s.q = wire.Request{Layout: layout, DedupTTL: rapid.SampledFrom([]uint32{1, 20, f.c.DedupTTLMax, f.c.DedupTTLMax + 1}).Draw(t, "ttl")}
	if s.report {
		s.obs = rapid.SliceOfN(rapid.Custom(drawObservation), 0, 4).Draw(t, "observations")
	} else {
		s.q.Guards = rapid.SliceOfN(rapid.Custom(drawGuard), 0, 2).Draw(t, "guards")
		s.q.Resources = rapid.SliceOfN(rapid.Custom(drawResource), 0, 5).Draw(t, "resources")
	}
	f.stamp(t, &s, now)
	f.past = append(f.past, s)
	return s
}

// altered is a repeat: the same bytes, sealed anew, or with another body.
func (f *traffic) altered(t *rapid.T, s sent, now Time) sent {
	switch rapid.IntRange(0, 3).Draw(t, "alter") {
	case 0:
		f.stamp(t, &s, now)
	case 1:
		s.q.Label = rapid.SampledFrom([]string{"", "other"}).Draw(t, "label")
	case 2:
		s.report = !s.report // an identity of its own
		f.stamp(t, &s, now)
	}
	return s
}

// stamp draws a timestamp around now, so that no other identity is spent with this one.
func (f *traffic) stamp(t *rapid.T, s *sent, now Time) {
	off := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-int64(f.c.Skew)-2, int64(f.c.Skew)+2)).Draw(t, "offset")
	s.h.Timestamp = uint64(int64(now.Wall) + off)
	ttl := uint64(s.q.DedupTTL)
	if s.report {
		ttl = uint64(f.c.DedupTTLMax)
	}
	for f.spent[s.h.Timestamp+ttl] {
		s.h.Timestamp++
	}
	f.spent[s.h.Timestamp+ttl] = true
}

func drawResource(t *rapid.T) wire.Resource {
	return wire.Resource{
		Bucket: ident.ID{rapid.ByteRange(0, 2).Draw(t, "bucket")},
		Window: rapid.SampledFrom([]uint32{0, 1, 10, 50, 501}).Draw(t, "window"),
		Rate:   rapid.SampledFrom([]uint32{0, 1, 5, 100}).Draw(t, "rate"),
		Tokens: rapid.SampledFrom([]uint16{0, 1, 1, 2, 7, 65535}).Draw(t, "tokens"),
	}
}

func drawObservation(t *rapid.T) wire.Observation {
	return wire.Observation{
		Tracker: ident.ID{rapid.ByteRange(0, 3).Draw(t, "tracker")}, TTL: rapid.SampledFrom([]uint32{0, 20, 100}).Draw(t, "ttl"),
		MaxSamples: rapid.SampledFrom([]uint32{0, 3, 100}).Draw(t, "max"), BufferSize: rapid.Uint32Range(0, 5).Draw(t, "size"),
		MinSamples: rapid.Uint32Range(0, 2).Draw(t, "min"), Latency: rapid.Uint32Range(0, 50).Draw(t, "latency"),
	}
}

func drawGuard(t *rapid.T) wire.Guard {
	o := drawObservation(t)
	return wire.Guard{
		Tracker: o.Tracker, TTL: o.TTL, MaxSamples: o.MaxSamples, BufferSize: o.BufferSize, MinSamples: o.MinSamples,
		Threshold: rapid.Uint32Range(0, 50).Draw(t, "threshold"),
	}
}

// TestEngineAgainstModel compares every verdict and every number of an engine with a model that has
// none of its structures, in traffic where everything runs full, expires, repeats and collides, with
// a wall clock that jumps ahead. A second engine with another seed must decide the same.
func TestEngineAgainstModel(outer *testing.T) {
	var seen [verdicts]int
	rapid.Check(outer, func(t *rapid.T) {
		c := Config{
			RateBuckets:       rapid.Uint32Range(0, 6).Draw(t, "buckets"),
			LatencyServices:   rapid.Uint32Range(0, 3).Draw(t, "trackers"),
			LatencyBufferSize: rapid.SampledFrom([]uint32{1, 4, 64}).Draw(t, "samples"),
			DedupTTLMax:       40, WindowMax: 500, Skew: 100,
			Identities: rapid.IntRange(1, 30).Draw(t, "identities"),
			Estimator:  Estimator(rapid.Uint8Range(0, uint8(estimators)-1).Draw(t, "estimator")),
			Start:      wallStart - 50,
		}
		w := newTwins(outer, c)
		f := &traffic{c: w.m.c, spent: map[uint64]bool{}}
		now := Time{Mono: 60 * nsPerMs, Wall: wallStart}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			passed := rapid.OneOf(
				rapid.SampledFrom([]int64{0, 1, nsPerMs, 10 * nsPerMs, 20*nsPerMs - 1, 40 * nsPerMs, 50 * nsPerMs, 100 * nsPerMs}),
				rapid.Int64Range(0, 5*nsPerMs), rapid.Int64Range(0, 300*nsPerMs),
			).Draw(t, "passed")
			now.Mono += passed
			now.Wall += uint64(passed / nsPerMs)
			if rapid.IntRange(0, 19).Draw(t, "jump") == 0 {
				now.Wall += rapid.Uint64Range(0, 200).Draw(t, "by")
			}
			s := f.draw(t, now)
			now := now // two workers may hand in their readings in another order
			now.Mono -= rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 60*nsPerMs)).Draw(t, "back")
			if err := w.send(now, s); err != nil {
				t.Fatal(err)
			}
		}
		for v := range w.seen {
			seen[v] += w.seen[v]
		}
	})
	for v := Granted; v < verdicts; v++ {
		if seen[v] == 0 && v != DropNoAnswer { // there is room for all answers here
			outer.Errorf("the traffic never came to %v", v)
		}
	}
}
