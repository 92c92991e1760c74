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
	if !f.failed.add(ref, f.round) {
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

// failures remembers which sends of a request failed. A round has a set from its
// first failure on: few have, and the sets are kept with the record.
type failures struct {
	first  endpointSet
	others []failedRound // in the order in which they were first told of
}

// failedRound is which sends of one later round, or of completion delivery,
// failed.
type failedRound struct {
	kind  SendKind
	round int
	set   endpointSet
}

// add reports whether the failure is new and of a send that the request, whose
// latest round is given, can have had.
func (s *failures) add(ref SendRef, latest int) bool {
	switch ref.Kind {
	case SendFirst:
		return s.first.add(ref.Endpoint)
	case SendReplay:
		if ref.Round < 1 || ref.Round > latest {
			return false
		}
	case SendCompletion:
		ref.Round = 0 // there is but one
	default:
		return false
	}
	// The latest is the likeliest.
	for i := len(s.others) - 1; i >= 0; i-- {
		if o := &s.others[i]; o.kind == ref.Kind && o.round == ref.Round {
			return o.set.add(ref.Endpoint)
		}
	}
	o := failedRound{kind: ref.Kind, round: ref.Round}
	o.set.add(ref.Endpoint)
	s.others = append(s.others, o)
	return true
}

// emptied returns failures without any, the array kept.
func (s failures) emptied() failures { return failures{others: s.others[:0]} }
