package core

import (
	"slices"
	"time"
)

// SocketID is the runtime's name of a socket. A runtime does not use one again.
type SocketID uint32

// deafness is how long a socket that was just changed ignores advice, so that
// repeated advice changes it at most that often.
const deafness = time.Second

// steering is what is known of sockets: at most one action is pending for each,
// whichever and however many requests brought the advice.
type steering struct {
	sockets []socketState
}

type socketState struct {
	id      SocketID
	pending bool
	retired bool          // replaced: drains, and is no longer worth advice
	until   time.Duration // deaf until then; a retired one is forgotten then
}

// find returns the state of a socket, or nil.
func (s *steering) find(id SocketID) *socketState {
	for i := range s.sockets {
		if s.sockets[i].id == id {
			return &s.sockets[i]
		}
	}
	return nil
}

// advise hears that an answer which came in on a socket advised another source
// port.
func (c *Core) advise(t time.Duration, id SocketID) {
	c.stats.Advice++
	s := c.steering.find(id)
	if s == nil {
		c.steering.sockets = append(c.steering.sockets, socketState{id: id, until: t})
		s = &c.steering.sockets[len(c.steering.sockets)-1]
	}
	if s.pending || s.retired || t < s.until {
		return
	}
	s.pending = true
	c.stats.Steers++
	c.events.push(pendingEvent{kind: EventSteer, socket: id})
}

// Rebound tells that the runtime followed [EventSteer]: replacement is read and
// new sends go out of it; old drains, and advice that comes in on it is ignored
// from now on. With old == replacement the socket was kept, because no port was
// free. The replacement is deaf to advice for a second. A socket that is
// replaced for reasons of the runtime's own is told the same way.
func (c *Core) Rebound(now Time, old, replacement SocketID) {
	t := c.advance(now)
	c.steering.sockets = slices.DeleteFunc(c.steering.sockets, func(s socketState) bool {
		return s.id == old || s.id == replacement || s.retired && s.until <= t
	})
	// Whatever was asked for out of the old socket ends within a horizon.
	if old != replacement {
		c.steering.sockets = append(c.steering.sockets, socketState{id: old, retired: true, until: t + c.timeline.Horizon()})
	}
	c.steering.sockets = append(c.steering.sockets, socketState{id: replacement, until: t + deafness})
}
