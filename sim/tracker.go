package sim

import (
	"slices"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// observation returns what an observation of a tracker says, without the latency.
func (w *World) observation(t *Tracker) wire.Observation {
	o := wire.Observation{TTL: uint32(t.TTL.Milliseconds()), MaxSamples: t.MaxSamples, MinSamples: t.MinSamples}
	if w.s.layout() == wire.Layout1 {
		o.BufferSize = min(t.MaxSamples, w.s.quotas().LatencyBufferSize)
		o.Tracker = ident.TrackerLayout1(t.Name, o.TTL, o.MaxSamples, o.BufferSize, o.MinSamples)
		return o
	}
	o.Tracker = ident.Tracker(t.Name, o.TTL, o.MaxSamples, o.MinSamples)
	return o
}

// These find a name; they return -1 if there is none.

func (s *Scenario) bucket(name string) int {
	return slices.IndexFunc(s.Buckets, func(x Bucket) bool { return x.Name == name })
}

func (s *Scenario) tracker(name string) int {
	return slices.IndexFunc(s.Trackers, func(x Tracker) bool { return x.Name == name })
}

func (s *Scenario) server(name string) int {
	return slices.IndexFunc(s.Servers, func(x Server) bool { return x.Name == name })
}

func (s *Scenario) service(name string) int {
	return slices.IndexFunc(s.Services, func(x Service) bool { return x.Name == name })
}
