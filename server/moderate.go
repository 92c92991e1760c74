package server

import "time"

// To wake up for each datagram of a flood costs more than to drop it. So a worker that drops nearly all that
// comes lets it gather for a moment, as network cards moderate their interrupts.
const (
	moderateBeyond = 32                      // datagrams dropped in moderateWithin: 32 000 a second
	moderateWithin = int64(time.Millisecond) // in ns
	moderateFor    = 30 * time.Microsecond   // and some 20 more, until the system has woken a thread
)

// moderation counts what a worker drops.
type moderation struct {
	nap     func(time.Duration) // nil if the worker's socket has no thread to itself
	dropped uint64              // since the last batch

	since   int64 // when the count began, in ns
	count   uint64
	flooded bool // the count before was that of a flood
}

// batch ends a batch of n datagrams that were read at a time, in ns. It naps if they were part of a flood:
// where one of four was not dropped, somebody's traffic goes on, and nothing waits.
func (m *moderation) batch(now int64, n int) {
	dropped := m.dropped
	m.dropped = 0
	if m.nap == nil || dropped == 0 {
		return
	}
	if took := now - m.since; took > moderateWithin {
		m.flooded = m.count > moderateBeyond && took < 2*moderateWithin
		m.since, m.count = now, 0
	}
	m.count += dropped
	if (m.flooded || m.count > moderateBeyond) && dropped*4 > uint64(n)*3 {
		m.nap(moderateFor)
	}
}
