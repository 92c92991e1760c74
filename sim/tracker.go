package sim

import (
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
	for i := range s.Buckets {
		if s.Buckets[i].Name == name {
			return i
		}
	}
	return -1
}

func (s *Scenario) tracker(name string) int {
	for i := range s.Trackers {
		if s.Trackers[i].Name == name {
			return i
		}
	}
	return -1
}

func (s *Scenario) server(name string) int {
	for i := range s.Servers {
		if s.Servers[i].Name == name {
			return i
		}
	}
	return -1
}

func (s *Scenario) service(name string) int {
	for i := range s.Services {
		if s.Services[i].Name == name {
			return i
		}
	}
	return -1
}
