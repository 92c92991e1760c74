package server

import "time"

// To wake up for each datagram of a flood costs more than to drop it. So a worker that drops nearly all that
// comes lets it gather for a moment, as network cards moderate their interrupts.
const (
	moderateBeyond = 32                      // datagrams dropped in moderateWithin: 32 000 a second
	moderateWithin = int64(time.Millisecond) // in ns
	moderateFor    = 30 * time.Microsecond   // and some 20 more, until the system has woken a thread
	moderateAlone  = 100 * time.Microsecond  // the same, where nobody has reason to mind
	aloneAfter     = int64(20 * time.Millisecond)
)

// moderation counts what a worker drops.
type moderation struct {
	nap     func(time.Duration) // nil if the worker's socket has no thread to itself
	dropped uint64              // since the last batch
	kept    int64               // when something was last not dropped, in ns

	since   int64 // when the count began, in ns
	count   uint64
	flooded bool // the count before was that of a flood
}

// batch ends a batch of n datagrams that were read at a time, in ns; full says that more may be there already. It naps
// if they were part of a flood: where one of four was not dropped, somebody's traffic goes on, and nothing waits. It
// naps longer where all was dropped for some time, as then there is nobody else to wait.
func (m *moderation) batch(now int64, n int, full bool) {
	dropped := m.dropped
	m.dropped = 0
	if m.nap == nil {
		return
	}
	if uint64(n) > dropped {
		m.kept = now
	}
	if dropped == 0 {
		return
	}
	if took := now - m.since; took > moderateWithin {
		m.flooded = m.count > moderateBeyond && took < 2*moderateWithin
		m.since, m.count = now, 0
	}
	m.count += dropped
	switch flooded := m.flooded || m.count > moderateBeyond; {
	case !flooded || full || dropped*4 <= uint64(n)*3:
	case now-m.kept > aloneAfter:
		m.nap(moderateAlone)
	default:
		m.nap(moderateFor)
	}
}
