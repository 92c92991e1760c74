package core

import (
	"time"

	"github.com/weirhq/weir/wire"
)

// flight is the record of one request, from Submit until its horizon, and until
// its completion was read if that is later. Records are pooled with what their
// slices hold.
type flight struct {
	id     RequestID
	uid    wire.UniqueID
	seq    uint64 // order of submission
	probe  bool   // the core's own, which nobody is told of
	phase  phase
	pins   int // the table, an event that is queued, an event that is lent
	slot   uint32
	cycles uint64 // how often the record was used

	t0, horizon time.Duration
	deadline    time.Duration // valid while in the heap
	heapAt      int

	members  *snapshot // frozen at Submit
	datagram []byte    // sealed once, sent every time
	asked    question

	round     int    // the last round that was entered
	replayed  int    // the last round that was sent
	replays   int    // rounds that were sent, without the first
	abandoned bool   // what is still to be sent is not
	owing     bool   // ended, and the completion delivery waits for deliverAt
	answered  uint64 // servers of the snapshot that gave a valid answer

	// The candidate, while phase is holding and after.
	candidate      int // server of the snapshot
	candidateRound int
	decideAt       time.Duration
	deliverAt      time.Duration // while owing
	keepPort       bool
	granted        bool
	guards         []GuardResult
	resources      []ResourceResult

	failed failures
	seen   Seen // until it ended
	// Datagrams that name no request are counted for all of them: what the
	// core's counters were at Submit.
	malformedBefore, unknownBefore uint64

	// How it ended, from then on.
	outcome Outcome
	elapsed time.Duration
	err     error
}

// phase is how far a request is.
type phase uint8

const (
	unused  phase = iota
	waiting       // no answer has counted
	holding       // a candidate waits for its instant
	ended         // decided or given up; the identity is kept until the horizon
)

// RequestID is the handle of an accepted request. A core never gives the same
// one twice, and never 0.
type RequestID uint64

// A handle is the record's slot and how often the record was used, so that it
// is found without a table. A slot whose count is used up is not used again.
const (
	slotBits  = 28
	slotLimit = 1 << slotBits
	maxCycles = 1<<(64-slotBits) - 1
)

// flightPool holds all records, the free ones in a stack.
type flightPool struct {
	all  []*flight
	free []*flight
}

// get returns a blank record, or nil when there can be no more.
func (p *flightPool) get() *flight {
	var f *flight
	if n := len(p.free); n > 0 {
		f = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		if len(p.all) == slotLimit {
			return nil
		}
		f = &flight{slot: uint32(len(p.all)), heapAt: notInHeap}
		p.all = append(p.all, f)
	}
	f.cycles++
	f.id = RequestID(f.cycles<<slotBits | uint64(f.slot))
	return f
}

// find returns the record of a handle, or nil once the record is free.
func (p *flightPool) find(id RequestID) *flight {
	slot := uint64(id) & (slotLimit - 1)
	if id == 0 || slot >= uint64(len(p.all)) || p.all[slot].id != id {
		return nil
	}
	return p.all[slot]
}

// unpin gives up one hold on a record, and the record with the last.
func (p *flightPool) unpin(f *flight) {
	f.pins--
	if f.pins > 0 {
		return
	}
	*f = flight{
		slot: f.slot, cycles: f.cycles, heapAt: notInHeap,
		datagram: f.datagram[:0], asked: f.asked.emptied(),
		guards: f.guards[:0], resources: f.resources[:0], failed: f.failed.emptied(),
	}
	if f.cycles < maxCycles {
		p.free = append(p.free, f)
	}
}

// serverBit is a server's place in a set of servers of a snapshot.
func serverBit(server int) uint64 { return 1 << server }
