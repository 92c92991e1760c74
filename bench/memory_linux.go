package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// slowestPage takes as much memory from the system, page by page, gives it back, and returns how long the slowest page took.
// A virtual machine whose host takes back what is free waits for each piece anew, and so does a server on it that grows.
func slowestPage(bytes int) (time.Duration, error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0, fmt.Errorf("taking %d bytes of memory: %w", bytes, err)
	}
	var slowest time.Duration
	last := time.Now()
	for i := 0; i < bytes; i += os.Getpagesize() {
		b[i] = 1
		now := time.Now()
		slowest = max(slowest, now.Sub(last))
		last = now
	}
	return slowest, unix.Munmap(b)
}
