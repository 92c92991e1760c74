package limiter

import "math/bits"

const (
	calendarPages = 256
	calendarSlots = calendarPages * 64
)

// calendar orders records by a time in milliseconds, the earliest first: a ring of slots, one a
// tick, over all the time that is ahead. Unlike in a [wheel] no slot stands for a longer time that
// is to be put in order later, so the first record is known however many wait. A popped record is
// either over or added again, as with a wheel, and a slot is the same kind of list.
//
// A tick is a millisecond unless the records' times are wider apart than there are slots. What still
// lies outside, after a clock has stepped, waits in the last slot.
type calendar struct {
	fits    uint8 // the shift to take when nothing waits
	shift   uint8 // log2 of a tick in ms
	held    int   // pages that were made
	waiting int
	first   uint64 // tick: no record waits in an earlier slot
	last    uint64 // tick of the last slot in which records wait
	pages   [calendarPages]*calendarPage
	spare   []*calendarPage
}

// calendarPage is 64 slots. It is there only while records wait in them.
type calendarPage struct {
	occupied uint64
	last     [64]uint32 // of each slot's list
}

// fit makes the calendar wide enough for times that are so many milliseconds apart, from when it is
// empty.
func (c *calendar) fit(width uint64) {
	c.fits = uint8(bits.Len64(width / calendarSlots))
	if c.waiting == 0 {
		c.shift = c.fits
	}
}

// add lets record i wait for a time. now is a time of which all earlier ones have passed.
func (c *calendar) add(l links, i uint32, time, now uint64) {
	if c.waiting == 0 {
		c.shift = c.fits
		c.first = time >> c.shift
		c.last = c.first
	} else if over := now >> c.shift; c.last+1 < over {
		c.skip(l, over-1)
	}
	tick := time >> c.shift
	if tick < c.first {
		c.back(l, tick)
	}
	*l.at(i) = i
	c.join(l, min(tick, c.first+calendarSlots-1), i)
	c.waiting++
}

// pop takes out the record that has waited longest in the first slot, if that slot is over before a
// time. The slot's tick is then first.
func (c *calendar) pop(l links, before uint64) (i uint32, ok bool) {
	if c.waiting == 0 {
		return 0, false
	}
	if c.first = c.next(c.first); c.first >= before>>c.shift {
		return 0, false
	}
	p := c.page(c.first)
	last := &p.last[c.first%64]
	if i = *l.at(*last); i == *last {
		c.clear(c.first)
	} else {
		*l.at(*last) = *l.at(i)
	}
	c.waiting--
	return i, true
}

// due reports whether a time belongs into the first slot or before it.
func (c *calendar) due(time uint64) bool { return time>>c.shift <= c.first }

// skip lets all records wait in the slot of a later tick than any of them does.
func (c *calendar) skip(l links, tick uint64) {
	list := c.gather(l, c.first)
	c.first, c.last = tick, tick
	c.join(l, tick, list)
}

// back makes an earlier tick the first. Records that are then too far ahead wait in the last slot.
func (c *calendar) back(l links, tick uint64) {
	if end := tick + calendarSlots - 1; c.last > end {
		list := c.gather(l, max(c.first, end+1))
		c.last = end
		c.join(l, end, list)
	}
	c.first = tick
}

// gather takes out the lists of all slots from a tick on, which is at most last, and returns them as
// one.
func (c *calendar) gather(l links, from uint64) (list uint32) {
	for tick := c.next(from); tick <= c.last; tick = c.next(tick + 1) {
		slot := c.page(tick).last[tick%64]
		if list != 0 {
			*l.at(list), *l.at(slot) = *l.at(slot), *l.at(list)
		}
		list = slot
		c.clear(tick)
	}
	return list
}

// join puts a list behind that of a slot.
func (c *calendar) join(l links, tick uint64, list uint32) {
	p := c.page(tick)
	if p == nil {
		p = c.take()
		c.pages[tick/64%calendarPages] = p
	}
	if p.occupied>>(tick%64)&1 != 0 {
		last := p.last[tick%64]
		*l.at(last), *l.at(list) = *l.at(list), *l.at(last)
	}
	p.occupied |= 1 << (tick % 64)
	p.last[tick%64] = list
	c.last = max(c.last, tick)
}

// clear empties a slot.
func (c *calendar) clear(tick uint64) {
	p := c.page(tick)
	if p.occupied &^= 1 << (tick % 64); p.occupied == 0 {
		c.pages[tick/64%calendarPages] = nil
		c.spare = append(c.spare, p)
	}
}

// next returns the first occupied tick from a given one on, which is at least first; if there is none,
// one behind last.
func (c *calendar) next(tick uint64) uint64 {
	for tick <= c.last {
		if p := c.page(tick); p != nil {
			if later := p.occupied >> (tick % 64); later != 0 {
				return tick + uint64(bits.TrailingZeros64(later))
			}
		}
		tick = tick/64*64 + 64
	}
	return tick
}

func (c *calendar) page(tick uint64) *calendarPage { return c.pages[tick/64%calendarPages] }

// take returns an empty page.
func (c *calendar) take() *calendarPage {
	n := len(c.spare)
	if n == 0 {
		c.held++
		return new(calendarPage)
	}
	p := c.spare[n-1]
	c.spare = c.spare[:n-1]
	return p
}
