package main

import (
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leastPriority gives this process what others leave it.
func leastPriority() {
	eachThread(func(id int) {
		_ = unix.SchedSetAttr(id, &unix.SchedAttr{Size: attrSize, Policy: unix.SCHED_NORMAL, Nice: 19}, 0)
	})
}

// mostPriority gives this process, and what it starts, a processor as soon as it asks for one, if the
// system lets it; so the rest of the machine's work is not in a measurement. In the normal class even
// the most favored may wait for the end of a tick, which is milliseconds.
func mostPriority() {
	eachThread(func(id int) {
		_ = unix.SchedSetAttr(id, &unix.SchedAttr{Size: attrSize, Policy: unix.SCHED_RR, Priority: 1}, 0)
	})
}

const attrSize = uint32(unsafe.Sizeof(unix.SchedAttr{}))

// eachThread calls f with all threads of this process. Those that they start later inherit. A thread for which f is yet to
// be called may start another meanwhile, so it looks until there is no new one.
func eachThread(f func(id int)) {
	known := make(map[int]bool)
	for n := -1; n < len(known); {
		n = len(known)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			if id, err := strconv.Atoi(t.Name()); err == nil && !known[id] {
				known[id] = true
				f(id)
			}
		}
	}
}
