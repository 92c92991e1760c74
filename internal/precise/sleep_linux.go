package precise

import (
	"time"

	"golang.org/x/sys/unix"
)

// SleepUntil returns at t, or some time after it. It holds a thread of the system meanwhile, and has
// the system wake that as exactly as it can from then on, not 50 us later for the sake of others.
func SleepUntil(t time.Time) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns; what is refused costs exactness only
	for d := time.Until(t); d > 0; d = time.Until(t) {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil) // a signal, such as the scheduler's, ends it early
	}
}
