package limiter

// milliNs turns a number of ns into a rate in thousandths per second, and back.
const milliNs = 1_000_000_000_000

const (
	meterBits  = 27 // log2 of a slot in ns: 134 ms
	meterSlots = 16
	meterSlot  = int64(1) << meterBits
	// meterEnough is how many events make a rate good enough: a longer look back is not needed.
	meterEnough = 32
	// meterForget is how many grants or reports are remembered beyond the slots; at that, all is halved.
	// It is large beside what is granted and not reported yet, which halving loses track of.
	meterForget = 1 << 14
)

// What a meter counts.
const (
	asked    = iota // requests that carry the guard
	granted         // those granted as a whole
	reported        // observations of the tracker
	counted
)

// meter counts events in slots of time, for their rates over the last two seconds, and for how many
// reports come of a grant: some clients report a sample, some reports come from observers.
type meter struct {
	slots [meterSlots][counted]uint32
	old   [counted]uint32 // what fell out of the slots
	now   int64           // the slot of the last event
	first int64           // the slot of the first one
}

// start begins to count.
func (m *meter) start(now int64) { m.now, m.first = now>>meterBits, now>>meterBits }

// count adds an event.
func (m *meter) count(now int64, what int) {
	m.roll(now)
	m.slots[m.now%meterSlots][what]++
}

// roll makes slots up to now.
func (m *meter) roll(now int64) {
	for slot := now >> meterBits; m.now < slot; {
		if m.now++; slot-m.now > 2*meterSlots { // all that is in the slots falls out once
			m.now = slot - 2*meterSlots
		}
		s := &m.slots[m.now%meterSlots]
		for what, n := range s {
			m.old[what] += n
		}
		*s = [counted]uint32{}
		if m.old[granted] > meterForget || m.old[reported] > meterForget {
			for what := range m.old {
				m.old[what] /= 2
			}
		}
	}
}

// rate returns events in thousandths per second: over the last slot, or over as many more as it
// takes to see enough of them.
func (m *meter) rate(now int64, what int) uint64 {
	m.roll(now)
	n, span := uint64(0), now-m.now<<meterBits
	for k := int64(0); k < meterSlots && m.now-k >= m.first; k++ {
		if k > 0 {
			span += meterSlot
		}
		n += uint64(m.slots[(m.now-k)%meterSlots][what])
		if n >= meterEnough && span >= meterSlot {
			break
		}
	}
	return n * milliNs / uint64(max(span, nsPerMs))
}

// perGrant turns a rate of reports into one of requests: by the reports so far and the grants that
// they can be of, which are those from more than a latency ago.
func (m *meter) perGrant(reports uint64, now int64, latency uint32) uint64 {
	m.roll(now)
	grants, all := uint64(m.old[granted]), uint64(m.old[reported])
	before := now - int64(latency)*nsPerMs
	for k := int64(0); k < meterSlots; k++ {
		slot := m.now - k
		s := &m.slots[(slot%meterSlots+meterSlots)%meterSlots]
		all += uint64(s[reported])
		part := min(max(before-slot<<meterBits, 0), meterSlot)
		grants += uint64(s[granted]) * uint64(part) >> meterBits
	}
	if grants < 16 || all == 0 {
		return reports
	}
	return reports * grants / all
}
