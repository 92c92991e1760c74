package core

import "time"

// fire runs the deadline of a request that is at or before t.
func (c *Core) fire(t time.Duration, f *flight) {
	switch f.phase {
	case waiting:
		c.nextRound(t, f)
	case holding:
		c.decide(t, f)
	default:
		if f.owing && t < f.horizon {
			c.deliver(t, f)
			c.acquit(f)
			return
		}
		c.forget(f)
	}
}

// nextRound leaves a round that ended without a candidate and enters the one
// that t lies in, however late the timer is: rounds that were slept through are
// not made up.
func (c *Core) nextRound(t time.Duration, f *flight) {
	if t >= f.horizon {
		c.finish(t, f, TimedOut, nil)
		return
	}
	f.round = c.timeline.RoundAt(t - f.t0)
	if f.round < c.timeline.Rounds() {
		c.sends.push(pendingSend{kind: SendReplay, f: f, id: f.id, round: f.round, to: f.missing()})
	}
	c.heap.set(f, f.t0+c.timeline.Start(f.round+1))
}

// decide ends a request with its candidate. Completion delivery comes first, or
// when the delay since the servers were last asked is over, if that is still to come
// and before the horizon.
func (c *Core) decide(t time.Duration, f *flight) {
	if c.timeline.CompletionDelivery() && t < f.horizon && f.missing() != 0 {
		f.deliverAt = f.t0 + c.timeline.Start(f.replayed) + c.timeline.DeliveryDelay()
		f.owing = t < f.deliverAt && f.deliverAt < f.horizon
		if !f.owing {
			c.deliver(t, f)
		}
	}
	outcome := Rejected
	if f.granted {
		outcome = Granted
	}
	c.finish(t, f, outcome, nil)
}

// deliver sends a decided request once more to the servers that have not answered.
func (c *Core) deliver(t time.Duration, f *flight) {
	c.sends.push(pendingSend{
		kind: SendCompletion, f: f, id: f.id, round: c.timeline.RoundAt(t - f.t0), to: f.missing(),
	})
}

// acquit ends the wait for a completion delivery, which was made or has nobody to
// go to any more.
func (c *Core) acquit(f *flight) {
	f.owing = false
	c.heap.set(f, f.horizon)
}

// finish ends a request with a completion, and a probe without.
func (c *Core) finish(t time.Duration, f *flight, o Outcome, err error) {
	f.conclude(t, o, err)
	f.seen.Datagrams[DatagramMalformed] = uint32(c.stats.Datagrams[DatagramMalformed] - f.malformedBefore)
	f.seen.Datagrams[DatagramUnknown] = uint32(c.stats.Datagrams[DatagramUnknown] - f.unknownBefore)
	if !f.probe {
		c.stats.Decided.count(f, c.timeline.Rounds())
		c.announce(f)
	}
	c.learn(t, f)
	if f.outcome == TimedOut && f.seen.Datagrams[DatagramStranger] > 0 {
		c.forceDiscovery(t) // a server that has the key is not known: DNS may name it by now
	}
	c.end(t, f)
}

// end takes a request out of those in flight and keeps its identity until the
// horizon.
func (c *Core) end(t time.Duration, f *flight) {
	f.phase = ended
	if !f.probe {
		c.inFlight--
	}
	if t >= f.horizon {
		c.forget(f)
		return
	}
	if f.owing {
		c.heap.set(f, f.deliverAt)
		return
	}
	c.heap.set(f, f.horizon)
}

// forget gives up a request's identity.
func (c *Core) forget(f *flight) {
	c.heap.remove(f)
	c.table.remove(f)
	c.flights.unpin(f)
}

// missing returns the servers that have not answered.
func (f *flight) missing() uint64 { return f.members.all() &^ f.answered }
