package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// leastPriority gives this process what others leave it: all of its threads, now and later.
func leastPriority() {
	const least = 19
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		id := 0
		for _, c := range t.Name() {
			id = id*10 + int(c-'0')
		}
		_ = unix.Setpriority(unix.PRIO_PROCESS, id, least) // a thread may have ended
	}
}
