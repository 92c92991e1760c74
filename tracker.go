package weir

import (
	"math"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// A LatencyTracker is a running estimate of how long something takes, fed by
// reports and asked by guards. Make it with [Tracker], once; it is a value to
// copy freely. Like a bucket's, its content is its identity.
type LatencyTracker struct {
	name string
	id   ident.ID // layout 2
	opts TrackerOptions
}

// TrackerOptions define a tracker beside its name. They go to the server as they
// are; the zero value is a tracker without samples, whose guards always pass.
type TrackerOptions struct {
	// TTL is how long an observation counts: whole milliseconds, up to 1<<32-1.
	TTL time.Duration
	// MaxSamples is how many of the latest observations count, up to 1<<32-1. A
	// server keeps at most the key's quota (latency_buffer_size_max).
	MaxSamples int
	// MinSamples is how many observations must count before there is an estimate,
	// up to 1<<32-1. With fewer, guards pass.
	MinSamples int
	// BufferSize is the number of samples in layout 1, where it is part of the
	// identity and may not exceed the key's quota. Layout 2 has no such field.
	BufferSize int
}

// Tracker returns the tracker of this name, which is any bytes, with these
// options. Options out of range are reported by the call that uses the tracker,
// as a [*ConfigError].
func Tracker(name string, o TrackerOptions) LatencyTracker {
	return LatencyTracker{
		name: name,
		id:   ident.Tracker(name, uint32(o.TTL.Milliseconds()), uint32(o.MaxSamples), uint32(o.MinSamples)),
		opts: o,
	}
}

// Name returns the name that the tracker was made with.
func (t LatencyTracker) Name() string { return t.name }

// Options returns the options that the tracker was made with.
func (t LatencyTracker) Options() TrackerOptions { return t.opts }

// ID returns the identity that clients and servers of layout 2 know the tracker
// by.
func (t LatencyTracker) ID() ident.ID { return t.id }

// Below makes the guard that passes while the estimate is below the threshold:
// whole milliseconds, up to 1<<32-1. A threshold of 0 never passes.
func (t LatencyTracker) Below(threshold time.Duration) Guard {
	return Guard{Tracker: t, Threshold: threshold}
}

// Took makes the observation that something took this long. It counts in whole
// milliseconds, rounded down, so that what took less than a guard's threshold is
// below it; a negative duration counts as 0, one over 1<<32-1 ms as that.
func (t LatencyTracker) Took(latency time.Duration) Observation {
	return Observation{Tracker: t, Latency: latency}
}

// A Guard is a condition on a tracker's estimate.
type Guard struct {
	Tracker   LatencyTracker
	Threshold time.Duration
}

// An Observation is one measured latency, to be reported.
type Observation struct {
	Tracker LatencyTracker
	Latency time.Duration
}

func (g *Guard) encode(i int, l wire.Layout) (wire.Guard, error) {
	o, err := g.Tracker.encode("Guards", i, l)
	if err != nil {
		return wire.Guard{}, err
	}
	threshold, why := milliseconds(g.Threshold)
	if why != "" {
		return wire.Guard{}, badBlock("Guards", i, "Threshold", why)
	}
	return wire.Guard{
		Tracker: o.Tracker, TTL: o.TTL, MaxSamples: o.MaxSamples, BufferSize: o.BufferSize, MinSamples: o.MinSamples,
		Threshold: threshold,
	}, nil
}

func (o *Observation) encode(i int, l wire.Layout) (wire.Observation, error) {
	w, err := o.Tracker.encode("Observations", i, l)
	w.Latency = uint32(min(max(o.Latency.Milliseconds(), 0), math.MaxUint32))
	return w, err
}

// encode fills in all but the latency.
func (t *LatencyTracker) encode(list string, i int, l wire.Layout) (wire.Observation, error) {
	if t.id.IsZero() {
		return wire.Observation{}, badBlock(list, i, "Tracker", "it is the zero LatencyTracker; make one with weir.Tracker")
	}
	ttl, why := milliseconds(t.opts.TTL)
	if why != "" {
		return wire.Observation{}, badBlock(list, i, "Tracker.TTL", why)
	}
	for _, f := range [...]struct {
		name  string
		value int
	}{
		{"Tracker.MaxSamples", t.opts.MaxSamples},
		{"Tracker.MinSamples", t.opts.MinSamples},
		{"Tracker.BufferSize", t.opts.BufferSize},
	} {
		if why := count(f.value, math.MaxUint32); why != "" {
			return wire.Observation{}, badBlock(list, i, f.name, why)
		}
	}
	w := wire.Observation{
		Tracker: t.id, TTL: ttl, MaxSamples: uint32(t.opts.MaxSamples), MinSamples: uint32(t.opts.MinSamples),
	}
	if l == wire.Layout1 {
		w.BufferSize = uint32(t.opts.BufferSize)
		w.Tracker = ident.TrackerLayout1(t.name, ttl, w.MaxSamples, w.BufferSize, w.MinSamples)
	}
	return w, nil
}
