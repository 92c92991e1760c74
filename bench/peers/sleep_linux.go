package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil returns at t, or some microseconds after it, where a timer of the runtime may be a
// millisecond late. It holds a thread meanwhile.
func sleepUntil(t time.Time) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns; what is refused costs exactness only
	for d := time.Until(t); d > 0; d = time.Until(t) {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil) // a signal ends it early
	}
}
