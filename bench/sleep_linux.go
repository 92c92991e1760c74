package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil waits by a system call: the runtime's timers are late by tens of microseconds more when
// nothing else runs.
func sleepUntil(t time.Time) {
	if d := time.Until(t); d > 0 {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil) // a signal ends it early, which costs nothing but an early request
	}
}
