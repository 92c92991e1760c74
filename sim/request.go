package sim

import (
	"errors"
	"time"

	"github.com/weirhq/weir/core"
)

// submit makes one request of a client, for a caller of its.
func (w *World) submit(c *client, caller int) {
	choice := w.compose(c)
	w.asked++
	c.asked++
	id, err := c.core.Submit(w.coreTime(c), &w.ask)
	r := w.tell(RecordSubmit)
	r.Client, r.Request, r.Choice, r.Elapsed = c.index, w.asked, choice, w.horizon
	r.Servers, r.Err = c.members, err
	w.hear(r)
	if err != nil {
		w.refused(c, caller, err)
	} else {
		p := w.newPending()
		p.number, p.ordinal, p.at, p.choice, p.caller = w.asked, c.asked, w.now, choice, caller
		c.pending[id] = p
	}
	w.settle(c)
	w.bound()
}

// refused goes on after a request that was not accepted.
func (w *World) refused(c *client, caller int, err error) {
	w.counts.Refused++
	switch {
	case errors.Is(err, core.ErrNoServers), errors.Is(err, core.ErrTooManyInFlight), errors.Is(err, core.ErrFailFast):
		w.think(c, caller, c.asked, w.now)
	default:
		w.fail("a request of %s cannot be made: %w", c.name, err)
	}
}

// completed takes the end of a request.
func (w *World) completed(c *client, done *core.Completion) {
	p := c.pending[done.Request]
	if p == nil {
		return
	}
	delete(c.pending, done.Request)
	p.letGo(c)
	granted := done.Outcome == core.Granted
	r := w.tell(RecordDecide)
	r.Client, r.Request, r.Choice, r.Completion, r.Granted = c.index, p.number, p.choice, done, granted
	w.hear(r)
	w.counts.Outcomes[done.Outcome]++
	w.owe(c, p, done)
	if service := w.mixes[c.group].choices[p.choice].service; granted && service >= 0 {
		w.beginWork(&w.services[service], c, p)
		return
	}
	w.think(c, p.caller, p.ordinal, p.at)
	w.putPending(p)
}

// owe remembers whose a completion delivery is that comes later than the decision.
func (w *World) owe(c *client, p *pending, done *core.Completion) {
	if w.delay == 0 || done.Server == 0 {
		return
	}
	c.owed[done.Request] = owed{p.number, p.ordinal}
	w.live++
	w.queue.plan(event{at: w.now + w.delay, kind: evDelivered, who: int32(c.index), number: uint64(done.Request)})
}

// delivered forgets a request whose completion delivery is over, if there was one.
func (w *World) delivered(c *client, id core.RequestID) {
	delete(c.owed, id)
	w.live--
}

// think lets a caller of a closed loop ask again once it has thought. What took no time at all
// is followed by at least a millisecond, so that time passes.
func (w *World) think(c *client, caller int, ordinal uint64, asked time.Duration) {
	a := &w.s.Clients[c.group].Arrivals
	if a.Kind != ArriveClosed {
		return
	}
	pause := a.Think.At(c.thinking.word(ordinal))
	if asked == w.now {
		pause = max(pause, time.Millisecond)
	}
	w.planAsk(c, w.now+pause, caller)
}

func (w *World) newPending() *pending {
	w.live++
	if n := len(w.spare); n > 0 {
		p := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return p
	}
	w.counts.Pending++
	return new(pending)
}

func (w *World) putPending(p *pending) {
	w.live--
	*p = pending{sockets: p.sockets[:0]}
	w.spare = append(w.spare, p)
}
