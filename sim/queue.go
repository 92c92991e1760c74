package sim

import "time"

// eventKind is what happens. At one instant events happen in the order of their kinds' ranks,
// those of one rank in the order in which they were planned.
type eventKind uint8

const (
	evBegin     eventKind = iota // the run is told from here on
	evFault                      // who: a fault begins
	evFaultEnds                  // who: it ends
	evRecords                    // DNS records change
	evArrive                     // d reaches a server
	evServed                     // who: a server's worker is done, number: its turn
	evAnswer                     // d reaches a client
	evWorked                     // who: a service is done with a piece of work, number: which
	evLookup                     // who: a client's lookup is answered, number: which
	evTimer                      // who: a client's timer
	evDelivered                  // who: a client's timer was the last that may deliver a decided request, number: which
	evAsk                        // who: a client makes requests, number: which caller
	evSweep                      // servers take back what has expired
	evEnd                        // no more requests
)

// ranks order what happens at one instant: what changes the world, then datagrams, then what
// waits for time to pass. So datagrams are handed in before timers.
var ranks = [...]uint64{
	evBegin: 0, evFault: 1, evFaultEnds: 1, evRecords: 1,
	evArrive: 2, evServed: 2, evAnswer: 2, evWorked: 2,
	evLookup: 3, evTimer: 4, evDelivered: 5, evAsk: 5, evSweep: 6, evEnd: 7,
}

const rankShift = 60

// event is something planned.
type event struct {
	at     time.Duration
	order  uint64 // rank, then sequence
	number uint64
	d      *datagram
	who    int32
	kind   eventKind
}

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	return e.order < o.order
}

// eventQueue is a heap of events, four children each.
type eventQueue struct {
	heap     []event
	sequence uint64
}

func (q *eventQueue) plan(e event) {
	q.sequence++
	e.order = ranks[e.kind]<<rankShift | q.sequence
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

// next takes the first event out.
func (q *eventQueue) next() (first event, ok bool) {
	n := len(q.heap) - 1
	if n < 0 {
		return first, false
	}
	first = q.heap[0]
	last := q.heap[n]
	q.heap[n] = event{}
	q.heap = q.heap[:n]
	if n > 0 {
		q.sink(last)
	}
	return first, true
}

// sink puts an event into the hole at the top.
func (q *eventQueue) sink(e event) {
	i, n := 0, len(q.heap)
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if !q.heap[least].before(&e) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = e
}
