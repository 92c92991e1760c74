package main

import "golang.org/x/sys/unix"

// realTime reports whether a real-time policy schedules this process. A thread of such a process keeps a processor from
// the others for as long as it wants, or a tenth of a second.
func realTime() bool {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return false
	}
	return attr.Policy == unix.SCHED_FIFO || attr.Policy == unix.SCHED_RR || attr.Policy == unix.SCHED_DEADLINE
}
