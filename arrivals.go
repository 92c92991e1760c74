package weir

import "sync/atomic"

// arrivals knows of the readers that have datagrams and not yet the client's
// lock: what they have goes before the timer. They form two groups, so that a
// flood cannot put the timer off for ever: when it is due, whoever is there is
// waited for, and whoever comes then joins the other group.
type arrivals struct {
	joined atomic.Uint32   // the group that readers join now
	groups [2]atomic.Int32 // how many are in each
	putOff bool            // for the group that is joined no more; guarded by the lock
}

// arrive tells that a reader has datagrams. It leaves the group that it joined
// when they are handed in.
func (a *arrivals) arrive() (group uint32) {
	group = a.joined.Load()
	a.groups[group].Add(1)
	return group
}

func (a *arrivals) leave(group uint32) { a.groups[group].Add(-1) }

// any reports whether a reader is on its way to the lock.
func (a *arrivals) any() bool { return a.groups[0].Load() > 0 || a.groups[1].Load() > 0 }

// first reports whether the timer, which is due, has to wait: for the readers
// that were there when this was first asked. It is called with the lock held.
func (a *arrivals) first() bool {
	if !a.putOff {
		if !a.any() {
			return false
		}
		a.putOff = true
		a.joined.Store(1 - a.joined.Load())
	}
	a.putOff = a.groups[1-a.joined.Load()].Load() > 0
	return a.putOff
}

// notDue tells that the timer waits for nobody. It is called with the lock held.
func (a *arrivals) notDue() { a.putOff = false }
