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

// stayOn keeps this process to some processors: all of its threads, now and later.
func stayOn(processors []int) error {
	var failed error
	eachThread(func(id int) {
		if err := unix.SchedSetaffinity(id, setOf(processors)); err != nil && err != unix.ESRCH { // a thread may have ended
			failed = fmt.Errorf("keeping to the processors %v: %w", processors, err)
		}
	})
	return failed
}

// onArgs are the arguments with which this program becomes another that stays on some processors.
func onArgs(processors []int, program string, args ...string) []string {
	list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(processors)), ","), "[]")
	return append([]string{onCommand, list, program}, args...)
}

// on becomes another program, which finds no more processors than those that it is to stay on.
func on(_ context.Context, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%s needs processors and a program", onCommand)
	}
	var list []int
	for text := range strings.SplitSeq(args[0], ",") {
		p, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, setOf(list)); err != nil {
		return fmt.Errorf("keeping to the processors %v: %w", list, err)
	}
	return syscall.Exec(path, args[1:], os.Environ())
}
