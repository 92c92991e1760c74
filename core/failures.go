package core

import "time"

// HandleSendFailure tells that a datagram which [Core.PollSend] gave out could
// not be sent. It costs that datagram only, unless all of a request's first
// sends failed before its round 0 is over and no answer has counted: then the
// request ends with err ([SendFailed]). Everything else is counted, no more. A
// failure counts once, however often it is told; one of a request that is
// forgotten is ignored.
func (c *Core) HandleSendFailure(now Time, ref SendRef, err error) {
	t := c.advance(now)
	if c.closed {
		return
	}
	if ref.Kind == SendReport {
		c.stats.SendFailures[SendReport]++
		return
	}
	f := c.flights.find(ref.Request)
	if f == nil || f.members == nil || ref.Endpoint < 0 || ref.Endpoint >= len(f.members.endpoints) {
		return
	}
	if !f.failed.add(ref) {
		return
	}
	if f.phase != ended {
		f.seen.SendFailures++
	}
	c.stats.SendFailures[ref.Kind]++
	if c.hopeless(t, f) {
		c.finish(t, f, SendFailed, err)
	}
}

// hopeless reports whether nothing of a request can have gone out.
func (c *Core) hopeless(t time.Duration, f *flight) bool {
	return f.phase == waiting && t < f.t0+c.timeline.Start(1) &&
		f.failed.first.size() == len(f.members.endpoints)
}

// failures remembers which sends of a request failed: of the first ones, and of
// the latest others.
type failures struct {
	first endpointSet

	kind  SendKind
	round int
	other endpointSet
}

// add reports whether the failure is new and of a kind that a request has.
func (s *failures) add(ref SendRef) bool {
	switch ref.Kind {
	case SendFirst:
		return s.first.add(ref.Endpoint)
	case SendReplay, SendCompletion:
	default:
		return false
	}
	if s.kind != ref.Kind || s.round != ref.Round {
		s.kind, s.round, s.other = ref.Kind, ref.Round, endpointSet{}
	}
	return s.other.add(ref.Endpoint)
}
