package sim

import (
	"math/rand/v2"
	"time"
)

// network is all links, one for each client, server and direction.
type network struct {
	servers  int
	up, down []path // by client * servers + server
}

// path is a link in one direction.
type path struct {
	spec  *Link // nil: no delay, no loss
	draws stream
	last  time.Duration // FIFO: the latest arrival so far
	burst rand.PCG
	bad   bool
}

func (n *network) path(d *datagram) *path {
	i := int(d.client)*n.servers + int(d.server)
	if d.answer {
		return &n.down[i]
	}
	return &n.up[i]
}

// layLinks finds for each path the last link that fits it.
func (w *World) layLinks() {
	n := len(w.clients) * len(w.servers)
	w.links = network{servers: len(w.servers), up: make([]path, n), down: make([]path, n)}
	for i := range w.s.Links {
		l := &w.s.Links[i]
		between := w.s.between(l.From, l.To, l.Both)
		for c := range w.clients {
			for s := range w.servers {
				up, down := between.fits(c, s)
				if at := c*len(w.servers) + s; up {
					w.links.up[at].spec = l
				}
				if at := c*len(w.servers) + s; down {
					w.links.down[at].spec = l
				}
			}
		}
	}
	for c := range w.clients {
		for s := range w.servers {
			at := c*len(w.servers) + s
			between := w.clients[c].name + " and " + w.servers[s].spec.Name
			w.links.up[at].open(w.seed, "requests between "+between)
			w.links.down[at].open(w.seed, "answers between "+between)
		}
	}
}

func (p *path) open(seed uint64, name string) {
	p.draws = newStream(seed, name)
	p.burst = newStream(seed, "bursts of "+name).inTurn()
}

// transmit puts a datagram on its way, or loses it.
func (w *World) transmit(d *datagram) {
	w.live++
	if d.server < 0 {
		w.lose(d, LostDead)
		return
	}
	p := w.links.path(d)
	draws := p.draws.of(d.luck)
	loss, twice := draws.Uint64(), draws.Uint64()
	delay, again := p.delay(&draws), p.delay(&draws)
	extra, cause := w.faults.touch(d)
	switch {
	case p.inBurst() && cause != LostPartition:
		cause = LostBurst
	case cause == 0 && p.spec != nil && p.spec.Loss.happens(loss):
		cause = LostLink
	}
	if cause != 0 {
		w.lose(d, cause)
		return
	}
	var twin *datagram
	if p.spec != nil && p.spec.Duplicate.happens(twice) {
		twin = w.twin(d)
		w.live++
	}
	w.planArrival(d, p.arrival(w.now, delay, extra))
	if twin != nil {
		w.planArrival(twin, p.arrival(w.now, again, extra))
	}
}

func (w *World) planArrival(d *datagram, at time.Duration) {
	e := event{at: at, kind: evArrive, d: d}
	if d.answer {
		e.kind = evAnswer
	}
	w.queue.plan(e)
}

// twin returns another copy of a datagram.
func (w *World) twin(d *datagram) *datagram {
	t := w.pool.get()
	t.payload = append(t.payload[:0], d.payload...)
	payload := t.payload
	*t = *d
	t.payload, t.copy = payload, 1
	return t
}

// delayed is what is drawn for a delay.
type delayed struct {
	by   time.Duration
	late bool // it may be overtaken on a FIFO link, too
}

// delay draws the delay of one copy.
func (p *path) delay(draws *rand.PCG) (d delayed) {
	word, reorder, late := draws.Uint64(), draws.Uint64(), draws.Uint64()
	if p.spec == nil {
		return d
	}
	d.by = p.spec.Delay.At(word)
	if p.spec.Reorder.happens(reorder) {
		d.late = true
		d.by += p.spec.Late.At(late)
	}
	return d
}

// arrival returns when a copy arrives.
func (p *path) arrival(now time.Duration, d delayed, extra time.Duration) time.Duration {
	at := now + d.by + extra
	if p.spec != nil && p.spec.FIFO && !d.late {
		at = max(at, p.last)
		p.last = at
	}
	return at
}

// inBurst moves the link between good and bad, and tells whether this datagram is lost to it.
func (p *path) inBurst() bool {
	if p.spec == nil || p.spec.Burst == (Burst{}) {
		return false
	}
	b := &p.spec.Burst
	change, loss := p.burst.Uint64(), p.burst.Uint64()
	if p.bad {
		p.bad = !b.Leave.happens(change)
	} else {
		p.bad = b.Enter.happens(change)
	}
	return p.bad && b.Loss.happens(loss)
}

// lose ends a datagram on its way.
func (w *World) lose(d *datagram, cause Cause) {
	r := w.tell(RecordLost)
	w.about(r, d)
	r.Answer, r.Cause = d.answer, cause
	w.hear(r)
	w.counts.Lost++
	w.end(d)
}

// end lets go of a datagram.
func (w *World) end(d *datagram) {
	w.live--
	w.pool.put(d)
}

// about fills a record in with what a datagram is.
func (w *World) about(r *Record, d *datagram) {
	r.Client, r.Server, r.Request, r.Send, r.Copy = int(d.client), int(d.server), d.request, d.kind, int(d.copy)
}
