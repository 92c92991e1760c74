package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// processors returns those that this process may run on.
func processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var all []int
	for i := 0; len(all) < set.Count(); i++ {
		if set.IsSet(i) {
			all = append(all, i)
		}
	}
	return all
}

func setOf(processors []int) *unix.CPUSet {
	set := new(unix.CPUSet)
	for _, p := range processors {
		set.Set(p)
	}
	return set
}

// stayOn keeps this process to some processors: all of its threads, now and later. The Go scheduler has as many: left
// alone it would find out by itself, some time later, and whoever changed the number meanwhile would keep what he found.
func stayOn(processors []int) error {
	runtime.GOMAXPROCS(len(processors))
	var failed error
	eachThread(func(id int) {
		if err := unix.SchedSetaffinity(id, setOf(processors)); err != nil && err != unix.ESRCH { // a thread may have ended
			failed = fmt.Errorf("keeping to the processors %v: %w", processors, err)
		}
	})
	return failed
}

// onArgs are the arguments with which this program becomes another that stays in its place.
func onArgs(p place, program string, args ...string) []string {
	list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(p.processors)), ","), "[]")
	return append([]string{onCommand, list, strconv.Itoa(p.nice), program}, args...)
}

// on becomes another program, which finds no more processors than those that it is to stay on.
func on(_ context.Context, args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("%s needs processors, a niceness and a program", onCommand)
	}
	var list []int
	for text := range strings.SplitSeq(args[0], ",") {
		p, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	nice, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	path, err := exec.LookPath(args[2])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, setOf(list)); err != nil {
		return fmt.Errorf("keeping to the processors %v: %w", list, err)
	}
	if nice == nicest {
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: attrSize, Policy: unix.SCHED_IDLE}, 0); err != nil {
			return fmt.Errorf("taking what others leave: %w", err)
		}
	} else if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err != nil { // of this thread
		return fmt.Errorf("taking the niceness %d: %w", nice, err)
	}
	return syscall.Exec(path, args[2:], os.Environ())
}
