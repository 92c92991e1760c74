package relay

import (
	"time"

	"golang.org/x/sys/unix"
)

// Sleep waits by a system call: the runtime's timers count in milliseconds while nothing else runs.
func Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal ends it early, and whoever waits looks at the time
}
