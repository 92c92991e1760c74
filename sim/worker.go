package sim

import "time"

// worker serves one receive queue of a server, one datagram at a time.
type worker struct {
	queue ring[*datagram]
	busy  *datagram
	turn  uint32        // an end that was planned for another turn is not one
	taken time.Duration // when busy was taken from the queue
	ends  time.Duration
}

const defaultQueue = 1024

// arriveAtServer puts a datagram into the receive queue of its flow.
func (w *World) arriveAtServer(d *datagram) {
	s := &w.servers[d.server]
	if !s.up {
		w.lose(d, LostDead)
		return
	}
	n := s.flow(d)
	k := &s.workers[n]
	if k.queue.n >= s.room() {
		w.lose(d, LostQueue)
		return
	}
	d.arrived = w.now
	k.queue.push(d)
	s.waiting++
	r := w.tell(RecordArrive)
	w.about(r, d)
	r.Worker, r.Queue, r.Payload = n, k.queue.n, d.payload
	w.hear(r)
	w.work(s, n)
}

// flow returns the worker that a client's socket belongs to.
func (s *server) flow(d *datagram) int {
	if len(s.workers) == 1 {
		return 0
	}
	return int(share(s.flows.word(thing(uint64(d.client), uint64(d.port))), uint64(len(s.workers))))
}

func (s *server) room() int {
	if s.spec.Queue == 0 {
		return defaultQueue
	}
	return s.spec.Queue
}

// work has a worker that is free take from its queue what it can.
func (w *World) work(s *server, n int) {
	k := &s.workers[n]
	for s.up && s.paused == 0 && k.busy == nil && k.queue.n > 0 {
		d := k.queue.pop()
		s.waiting--
		k.busy, k.taken, k.ends = d, w.now, w.now+w.serviceTime(s, d)
		if k.ends == w.now {
			w.serve(s, k)
			continue
		}
		w.planEnd(s, n)
	}
}

// serviceTime draws how long a datagram takes.
func (w *World) serviceTime(s *server, d *datagram) time.Duration {
	what := thing(d.luck, uint64(d.copy))
	return s.spec.Service.At(s.draws.word(what)) + w.faults.slowness(s.index, what)
}

func (w *World) planEnd(s *server, n int) {
	k := &s.workers[n]
	k.turn++
	w.queue.plan(event{at: k.ends, kind: evServed, who: int32(s.index), number: uint64(k.turn)<<32 | uint64(n)})
}

// served ends what a worker does, unless that was put off or has died.
func (w *World) served(s *server, number uint64) {
	n, turn := int(uint32(number)), uint32(number>>32)
	if k := &s.workers[n]; k.turn == turn && k.busy != nil {
		w.serve(s, k)
		w.work(s, n)
	}
}

// pause stops all workers where they are.
func (w *World) pause(s *server) {
	s.paused++
	if s.paused > 1 {
		return
	}
	for n := range s.workers {
		k := &s.workers[n]
		k.turn++
		k.ends -= w.now // what is left
	}
}

// resume lets them go on.
func (w *World) resume(s *server) {
	s.paused--
	if s.paused > 0 {
		return
	}
	for n := range s.workers {
		k := &s.workers[n]
		k.ends += w.now
		if k.busy != nil {
			w.planEnd(s, n)
		}
		w.work(s, n)
	}
}

// crowded tells whether a worker's queue is much longer than those of its server are on average:
// of two workers, it has all that waits.
func (s *server) crowded(k *worker) bool {
	return k.queue.n > 8 && k.queue.n*len(s.workers) >= 2*s.waiting && len(s.workers) > 1
}
