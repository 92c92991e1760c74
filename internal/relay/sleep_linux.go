package relay

import (
	"time"

	"golang.org/x/sys/unix"
)

// Sleep waits by system calls: the runtime's timers count in milliseconds while nothing else runs.
func Sleep(d time.Duration) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns of this thread; the default is 50 us
	for until := time.Now().Add(d); d > 0; d = time.Until(until) {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil) // the runtime's signals end it early
	}
}
