package limiter

import "math/bits"

const (
	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelLevels = 8
	wheelEnd    = 1<<(wheelBits*wheelLevels) - 1 // the last tick there is
)

// wheel orders records by the tick at which they are to be looked at: a hierarchical timing wheel.
// A slot of level 0 is one tick; a slot of each further level is as long as the whole level under
// it. Records wait first come, first served in the slot of the lowest level that tells them from
// the current tick, so adding and popping cost the same however many wait. A popped record is
// either over or added again: its owner knows its tick, the wheel does not, which lets an owner put
// off what it has prolonged only when the wheel comes by.
//
// A slot is a circular list through the records' links, named by its last record. The wheel's links
// are those of the pool that its records are from.
type wheel struct {
	now      uint64 // no record waits in a slot that begins earlier
	soonest  uint64 // no occupied slot begins earlier
	emptying int    // the level of the slot that begins at now and is being emptied; 0 if none is
	waiting  int
	occupied [wheelLevels]uint64
	last     [wheelLevels][wheelSlots]uint32
}

// rest tells an empty wheel where time is. On a wheel with records it does nothing.
func (w *wheel) rest(tick uint64) {
	if w.waiting == 0 {
		w.now, w.soonest, w.emptying = min(tick, wheelEnd), wheelEnd, 0
	}
}

// add lets record i wait for a tick. A tick that has passed counts as the current one.
func (w *wheel) add(l links, i uint32, tick uint64) {
	tick = max(w.now, min(tick, wheelEnd))
	level := max(0, bits.Len64(tick^w.now)-1) / wheelBits
	slot := tick >> (level * wheelBits) % wheelSlots
	if last := w.last[level][slot]; last != 0 {
		*l.at(i) = *l.at(last)
		*l.at(last) = i
	} else {
		*l.at(i) = i
	}
	w.last[level][slot] = i
	w.occupied[level] |= 1 << slot
	w.soonest = min(w.soonest, tick>>(level*wheelBits)<<(level*wheelBits))
	w.waiting++
}

// pop takes out the record that has waited longest in the earliest slot, if that slot begins before
// a tick. The wheel's current tick is then the slot's beginning. A record whose tick is that is
// among the first of all; another one came from a longer slot, is to be added again, and then waits
// in a shorter one.
func (w *wheel) pop(l links, before uint64) (i uint32, ok bool) {
	if w.waiting == 0 || w.soonest >= before {
		return 0, false
	}
	level, slot := w.first()
	begin := (w.now>>(level*wheelBits)&^(wheelSlots-1) | uint64(slot)) << (level * wheelBits)
	w.soonest = begin
	if begin >= before {
		return 0, false
	}
	if begin > w.now {
		w.now, w.emptying = begin, level
	}
	last := w.last[level][slot]
	i = *l.at(last)
	if i == last {
		w.last[level][slot] = 0
		w.occupied[level] &^= 1 << slot
	} else {
		*l.at(last) = *l.at(i)
	}
	w.waiting--
	return i, true
}

// first returns the level and the slot of the earliest records. There are some.
func (w *wheel) first() (level, slot int) {
	at := int(w.now % wheelSlots)
	if w.occupied[0]>>at&1 != 0 {
		return 0, at
	}
	if level = w.emptying; level > 0 {
		slot = int(w.now >> (level * wheelBits) % wheelSlots)
		if w.occupied[level]>>slot&1 != 0 {
			return level, slot
		}
		w.emptying = 0
	}
	for level = 0; ; level++ {
		at = int(w.now >> (level * wheelBits) % wheelSlots)
		if later := w.occupied[level] >> at; later != 0 {
			return level, at + bits.TrailingZeros64(later)
		}
	}
}
