package core

import "strconv"

// EventKind is what an event tells. The zero value is none.
type EventKind uint8

// The kinds of events, and which fields of [Event] they fill.
const (
	EventCompleted         EventKind = 1 + iota // a request ended: Completion
	EventLookup                                 // start a DNS lookup: Lookup
	EventCancelLookup                           // the answer to Lookup is no longer wanted
	EventSteer                                  // replace Socket by one on another port, then call Rebound
	EventMembershipChanged                      // what is known of servers is new: Membership, Discovered
	EventDiscoveryFailed                        // a refresh failed, wholly or for some targets; what was known stays: Err, Discovered
	EventFailingFast                            // from now on Submit fails with ErrFailFast; Core.FailFast says why
	EventRecovered                              // it does no more: a server has answered
)

// String returns the kind in a word or two.
func (k EventKind) String() string {
	switch k {
	case EventCompleted:
		return "completed"
	case EventLookup:
		return "lookup"
	case EventCancelLookup:
		return "cancel lookup"
	case EventSteer:
		return "steer"
	case EventMembershipChanged:
		return "membership changed"
	case EventDiscoveryFailed:
		return "discovery failed"
	case EventFailingFast:
		return "failing fast"
	case EventRecovered:
		return "recovered"
	}
	return "EventKind(" + strconv.Itoa(int(k)) + ")"
}

// Event is something that the core tells or wants done.
type Event struct {
	Kind       EventKind  // which of the other fields are filled
	Completion Completion // the request that ended
	Lookup     Lookup     // to start or cancel
	Socket     SocketID   // to replace
	Membership []Server   // oldest first, in memory of the caller's own
	Discovered Discovered // how much of what DNS said was taken
	Err        error      // why a refresh failed
}

// pendingEvent is an event that was not polled yet.
type pendingEvent struct {
	kind       EventKind
	f          *flight
	lookup     Lookup
	socket     SocketID
	members    *snapshot
	discovered Discovered
	err        error
}

// PollEvent writes the next event into ev and reports whether there was one. The
// results in a completion are valid until the next PollEvent.
func (c *Core) PollEvent(ev *Event) bool {
	if c.lent != nil {
		c.flights.unpin(c.lent)
		c.lent = nil
	}
	p := c.events.front()
	if p == nil {
		return false
	}
	*ev = Event{Kind: p.kind, Lookup: p.lookup, Socket: p.socket, Discovered: p.discovered, Err: p.err}
	if p.f != nil {
		ev.Completion = c.completion(p.f)
		c.lent = p.f
	}
	if p.members != nil {
		ev.Membership = cloneServers(p.members.servers)
	}
	c.events.pop()
	return true
}
