package soak

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// waited returns for how long the threads of a process have been ready to run and
// had no processor, in all, up to the last time that each got one; 0 if the
// system does not tell.
func waited(pid int) time.Duration {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		// Time on a processor, time waiting for one, and how often; in ns.
		if fields := bytes.Fields(b); len(fields) == 3 {
			if n, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				sum += time.Duration(n)
			}
		}
	}
	return sum
}
