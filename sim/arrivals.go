package sim

import "time"

// planArrivals plans the first request of the n-th client of its group, or of each caller.
func (w *World) planArrivals(c *client, n int) {
	g := &w.s.Clients[c.group]
	a := &g.Arrivals
	switch a.Kind {
	case ArriveConstant: // the clients of a group take turns
		w.planAsk(c, a.Start+a.Every*time.Duration(n)/time.Duration(g.count()), 0)
	case ArrivePoisson:
		w.planAsk(c, a.Start+Exponential(a.Every).At(c.gaps.Uint64()), 0)
	case ArriveBurst:
		w.planAsk(c, a.Start, 0)
	case ArriveTrace:
		w.planNext(c)
	case ArriveClosed:
		for caller := range a.Size {
			w.planAsk(c, a.Start+a.Think.At(c.gaps.Uint64()), caller)
		}
	}
}

// planAsk plans requests at a time, unless that is over by then.
func (w *World) planAsk(c *client, at time.Duration, caller int) {
	if at >= w.stops(c) {
		return
	}
	w.live++
	w.queue.plan(event{at: at, kind: evAsk, who: int32(c.index), number: uint64(caller)})
}

// planNext plans the next request of a recorded trace.
func (w *World) planNext(c *client) {
	a := &w.s.Clients[c.group].Arrivals
	if c.next < len(a.Times) {
		c.next++
		w.planAsk(c, a.Start+a.Times[c.next-1], 0)
	}
}

// stops returns when a client makes no more requests.
func (w *World) stops(c *client) time.Duration {
	if stop := w.s.Clients[c.group].Arrivals.Stop; stop > 0 {
		return min(stop, w.s.Length)
	}
	return w.s.Length
}

// arrive makes the requests that are due now and plans the next.
func (w *World) arrive(c *client, caller int) {
	w.live--
	a := &w.s.Clients[c.group].Arrivals
	size := 1
	switch a.Kind {
	case ArriveConstant:
		w.planAsk(c, w.now+a.Every, 0)
	case ArrivePoisson:
		w.planAsk(c, w.now+Exponential(a.Every).At(c.gaps.Uint64()), 0)
	case ArriveBurst:
		w.planAsk(c, w.now+a.Every, 0)
		size = a.Size
	case ArriveTrace:
		w.planNext(c)
	case ArriveClosed: // when this one has ended
	}
	for range size {
		if w.submit(c, caller); w.err != nil {
			return
		}
	}
}
