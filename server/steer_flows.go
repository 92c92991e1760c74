package server

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// The steering feedback of answers.
const (
	changePort = 0
	keepPort   = 1
)

// A worker knows at most flowSets * flowWays flows. Those beyond are not seen, and so not
// asked to move.
const (
	flowSets = 512
	flowWays = 8
)

// A flow that stays where it is, however often it is asked, is asked every askEvery
// patientTries times, and then left alone for twice as long each time, up to askEvery
// times 2 to the maxDoublings.
const (
	askEvery     = time.Second
	patientTries = 3
	maxDoublings = 6
)

// What a worker does about flows, beside answering them.
const (
	dutyNone  = iota // nothing: every answer keeps the port
	dutyCount        // count the datagrams of each
	dutyAsk          // ask those that were chosen to change their port
)

// flows is what one worker knows of the flows that its socket gets. The worker calls
// feedback and reported, the balancer all else. While there is no duty, that costs the
// worker one load of a word that nobody writes; it allocates never. A nil *flows is that of
// a worker that does not steer.
type flows struct {
	duty  atomic.Uint32
	asked atomic.Uint64 // answers that asked a flow to move
	seed  maphash.Seed

	mu    sync.Mutex
	sets  [flowSets][flowWays]flow
	order [flowSets * flowWays]uint16 // space for choose
}

// flow is a peer's address and port, known by a hash of them.
type flow struct {
	mark   uint64 // 0 in a place where there is none
	at     int64  // ns: when it was last asked, if tries is not 0
	load   uint32 // datagrams while they were last counted
	tries  uint8  // how often it has been asked in vain so far
	chosen bool   // it is to be asked
}

func newFlows() *flows { return &flows{seed: maphash.MakeSeed()} }

// feedback takes in that a request of a flow is answered, at a time in ns, and returns the
// answer's steering feedback.
func (f *flows) feedback(now int64, from netip.AddrPort) uint8 {
	if f == nil || f.duty.Load() == dutyNone {
		return keepPort
	}
	return f.answer(now, f.mark(from))
}

// reported takes in that a flow has sent a report. Reports have no answer to ask by: they
// count for a flow that is known by its requests, and make none known.
func (f *flows) reported(from netip.AddrPort) {
	if f == nil || f.duty.Load() != dutyCount {
		return
	}
	mark := f.mark(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.find(mark); e != nil {
		e.load++
	}
}

// mark returns what a flow is known by. The seed is a secret of the process, so nobody
// can choose flows that share a set.
func (f *flows) mark(from netip.AddrPort) uint64 {
	var b [18]byte
	a := from.Addr().As16()
	copy(b[:], a[:])
	binary.LittleEndian.PutUint16(b[16:], from.Port())
	return max(1, maphash.Bytes(f.seed, b[:]))
}

func (f *flows) answer(now int64, mark uint64) uint8 {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.duty.Load() {
	case dutyCount:
		if e := f.take(now, mark); e != nil {
			e.load++
		}
	case dutyAsk:
		if e := f.find(mark); e != nil && e.chosen && e.mayBeAsked(now) {
			e.at = now
			e.tries = min(e.tries+1, patientTries+maxDoublings)
			f.asked.Add(1)
			return changePort
		}
	}
	return keepPort
}

func (f *flows) set(mark uint64) *[flowWays]flow { return &f.sets[mark%flowSets] }

func (f *flows) find(mark uint64) *flow {
	set := f.set(mark)
	for i := range set {
		if set[i].mark == mark {
			return &set[i]
		}
	}
	return nil
}

// take returns the place of a flow, or nil if all that it could have are in use. One that
// was asked has its place for askEvery, so that it is not asked more often than that, and
// keeps it longer only as far as nobody needs it.
func (f *flows) take(now int64, mark uint64) *flow {
	set := f.set(mark)
	var free *flow
	for i := range set {
		e := &set[i]
		switch {
		case e.mark == mark:
			return e
		case e.mark == 0:
			free = e
		case free == nil && e.load == 0 && now-e.at >= int64(askEvery):
			free = e
		}
	}
	if free != nil {
		*free = flow{mark: mark}
	}
	return free
}

// mayBeAsked reports whether the flow is not left alone.
func (e *flow) mayBeAsked(now int64) bool { return e.tries == 0 || now-e.at >= int64(e.pause()) }

// pause is how long a flow that was asked is left alone.
func (e *flow) pause() time.Duration {
	return askEvery << max(0, int(e.tries)-patientTries)
}

// count makes the worker count datagrams by flow from now on. Flows that were asked and are
// still there are remembered, and so are those that are left alone.
func (f *flows) count(now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.sets {
		for j := range f.sets[i] {
			e := &f.sets[i][j]
			if e.tries > 0 && (e.load > 0 || !e.mayBeAsked(now)) {
				e.load, e.chosen = 0, false
			} else {
				*e = flow{}
			}
		}
	}
	f.duty.Store(dutyCount)
}

// seen returns how many flows have sent a request while they were counted.
func (f *flows) seen() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.sets {
		for j := range f.sets[i] {
			if f.sets[i][j].load > 0 {
				n++
			}
		}
	}
	return n
}

// ask chooses flows at random whose loads, as they were counted, add up to at most the
// excess, has the worker ask them to move, and returns how many it chose. A flow whose own
// load is more than the excess is not chosen: it would take the excess along.
func (f *flows) ask(now int64, excess uint64, random *rand.Rand) (chosen int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for i := range f.sets {
		for j := range f.sets[i] {
			e := &f.sets[i][j]
			if e.load > 0 && uint64(e.load) <= excess && e.mayBeAsked(now) {
				f.order[n] = uint16(i*flowWays + j)
				n++
			}
		}
	}
	for ; n > 0; n-- {
		i := random.IntN(n)
		e := &f.sets[f.order[i]/flowWays][f.order[i]%flowWays]
		f.order[i] = f.order[n-1]
		if uint64(e.load) <= excess {
			e.chosen = true
			excess -= uint64(e.load)
			chosen++
		}
	}
	f.duty.Store(dutyAsk)
	return chosen
}

// least returns the least load of a flow that may be asked, or 0 if there is none.
func (f *flows) least(now int64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	least := uint32(0)
	for i := range f.sets {
		for j := range f.sets[i] {
			e := &f.sets[i][j]
			if e.load > 0 && e.mayBeAsked(now) && (least == 0 || e.load < least) {
				least = e.load
			}
		}
	}
	return uint64(least)
}

// movable returns what the flows have together whose load is at most a limit.
func (f *flows) movable(limit uint64) (load uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.sets {
		for j := range f.sets[i] {
			if n := uint64(f.sets[i][j].load); n <= limit {
				load += n
			}
		}
	}
	return load
}

// rest ends the worker's duty.
func (f *flows) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.duty.Store(dutyNone)
}
