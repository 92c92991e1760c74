package sim

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// epoch is the wall clock's reading at time 0, in Unix nanoseconds: 2027-01-01T00:00:00Z.
const epoch int64 = 1_798_761_600_000_000_000

// A World is a run: a scenario that is being played. Make one with [New] and call Step until it
// returns false. It is not safe for concurrent use; several worlds may share a scenario.
type World struct {
	s        *Scenario
	seed     uint64
	recorder Recorder
	record   Record
	begun    bool // time 0 has come; what is before is not told
	done     bool
	err      error

	now     time.Duration
	queue   eventQueue
	pool    datagrams
	live    int // what keeps the run going: requests, work, datagrams, arrivals to come
	counts  Summary
	asked   uint64 // requests
	key     apikey.Key
	horizon time.Duration
	delay   time.Duration // of completion delivery

	clients  []client
	servers  []server
	services []service
	links    network
	faults   faults
	dns      dns
	mixes    []mix // by group

	// What one call works with.
	front front
	send  core.Send
	event core.Event
	ask   core.Request
	drawn []int // of each family, the bucket that this request takes from, or -1
	spare []*pending
	said  [1]wire.Observation
}

// New prepares a run. The scenario must not change until it is over. A nil recorder hears
// nothing. The error is one of [Scenario.Validate].
func New(s *Scenario, seed uint64, rec Recorder) (*World, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	w := &World{s: s, seed: seed, recorder: rec}
	if err := w.build(); err != nil {
		return nil, err
	}
	w.layLinks()
	w.planFaults()
	w.openDNS()
	w.queue.plan(event{at: 0, kind: evBegin})
	w.queue.plan(event{at: s.Length, kind: evEnd})
	w.queue.plan(event{at: sweepEvery, kind: evSweep})
	w.live++ // the end
	return w, nil
}

// build makes everybody.
func (w *World) build() (err error) {
	if w.key, err = apikey.New(w.s.auth(), 1, w.s.quotas(), newEntropy(w.seed, "key")); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	timeline, err := w.s.policy().Compile()
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	w.horizon, w.delay = timeline.Horizon(), timeline.DeliveryDelay()
	w.addServices()
	w.addMixes()
	if err := w.openFront(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if err := w.addServers(); err != nil {
		return err
	}
	return w.addClients()
}

// Run plays a scenario to its end.
func Run(s *Scenario, seed uint64, rec Recorder) (Summary, error) {
	w, err := New(s, seed, rec)
	if err != nil {
		return Summary{}, err
	}
	for w.Step() {
	}
	return w.Summary(), w.Err()
}

// Now returns the time of the last step. It may be before 0: clients find their servers before
// the first requests are made.
func (w *World) Now() time.Duration { return w.now }

// Err returns why a run ended early, else nil.
func (w *World) Err() error { return w.err }

// Step lets the next thing happen and reports whether there is more. When it returns false all
// that was begun has ended, or Err says why not.
func (w *World) Step() bool {
	if w.done {
		return false
	}
	e, ok := w.queue.next()
	if !ok {
		w.finish()
		return false
	}
	w.now = e.at
	w.counts.Events++
	w.happen(&e)
	w.bound()
	if w.err != nil {
		w.done = true
		return false
	}
	if w.begun && w.live-w.stuck() <= 0 {
		w.finish()
	}
	return !w.done
}

func (w *World) happen(e *event) {
	switch e.kind {
	case evBegin:
		w.begin()
	case evFault:
		w.beginFault(int(e.who))
	case evFaultEnds:
		w.endFault(int(e.who))
	case evRecords:
		w.changeRecords(int(e.who), e.number != 0)
	case evArrive:
		w.arriveAtServer(e.d)
	case evServed:
		w.served(&w.servers[e.who], e.number)
	case evAnswer:
		w.arriveAtClient(e.d)
	case evWorked:
		w.worked(&w.services[e.who], e.number)
	case evLookup:
		w.answerLookup(&w.clients[e.who], core.LookupID(e.number))
	case evTimer:
		w.fire(&w.clients[e.who])
	case evDelivered:
		w.delivered(&w.clients[e.who], core.RequestID(e.number))
	case evAsk:
		w.arrive(&w.clients[e.who], int(e.number))
	case evSweep:
		w.sweep()
	case evEnd:
		w.live--
	}
}

// begin tells what is there at time 0.
func (w *World) begin() {
	w.begun = true
	r := w.tell(RecordRun)
	r.Key = w.key
	w.hear(r)
	for i := range w.servers {
		w.tellServer(&w.servers[i], nil)
	}
	for i := range w.clients {
		if c := &w.clients[i]; len(c.members) > 0 {
			w.tellMembership(c)
		}
	}
}

// finish ends what is left when nothing more can come of it.
func (w *World) finish() {
	w.done = true
	for i := range w.servers {
		if s := &w.servers[i]; s.up {
			w.stop(s)
		}
	}
}

// fail ends the run: it is too much, or of a reason that [Scenario.Validate] should have seen.
func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("sim: at %v: "+format, append([]any{w.now}, args...)...)
	}
}

// tell begins a record.
func (w *World) tell(kind RecordKind) *Record {
	w.record = Record{At: w.now, Kind: kind}
	return &w.record
}

// hear hands a record to the recorder.
func (w *World) hear(r *Record) {
	if w.recorder != nil && w.begun {
		w.recorder.Record(r)
	}
}

// wall returns the reading of a wall clock that is so far off, in Unix nanoseconds.
func (w *World) wall(skew time.Duration) int64 { return epoch + int64(w.now) + int64(skew) }

// engineTime is the time by a server's clocks.
func (w *World) engineTime(s *server) limiter.Time {
	return limiter.Time{Mono: int64(w.now) + int64(s.spec.Age), Wall: uint64(w.wall(s.skew) / nsPerMs)}
}

// coreTime is the time by a client's clocks.
func (w *World) coreTime(c *client) core.Time {
	return core.Time{Mono: w.now, Wall: w.wall(c.skew) / nsPerMs}
}

const nsPerMs = int64(time.Millisecond)
