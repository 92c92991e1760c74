package main

import (
	"os"
	"syscall"
	"time"
)

// echo is how long after the first signal another SIGTERM is taken for the same: GNU
// timeout sends one to the process and one to its group, and supervisors do the like.
const echo = time.Second

// untilInsisted calls first with the first signal, which asks for a clean end, and returns
// the one that insists: an interrupt, or a SIGTERM that is no echo of the first.
func untilInsisted(signals <-chan os.Signal, first func(os.Signal)) os.Signal {
	first(<-signals)
	asked := time.Now()
	for {
		sig := <-signals
		if sig != syscall.SIGTERM || time.Since(asked) >= echo {
			return sig
		}
	}
}
