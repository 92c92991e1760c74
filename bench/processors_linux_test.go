package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A program that is started on one processor finds one, whichever it is.
func TestOn(t *testing.T) {
	if list := os.Getenv("BENCH_ON"); list != "" {
		t.Fatal(on(t.Context(), []string{list, "0", "grep", "Cpus_allowed_list", "/proc/self/status"})) // returns only if it cannot
	}
	for _, p := range processors() {
		args := onArgs(place{processors: []int{p}}, "program", "flag")
		if want := []string{onCommand, fmt.Sprint(p), "0", "program", "flag"}; strings.Join(args, " ") != strings.Join(want, " ") {
			t.Fatalf("%q, want %q", args, want)
		}
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestOn$")
		child.Env = append(os.Environ(), "BENCH_ON="+args[1])
		out, err := child.CombinedOutput()
		if fields := strings.Fields(string(out)); err != nil || len(fields) != 2 || fields[1] != fmt.Sprint(p) {
			t.Errorf("on processor %d: %v\n%s", p, err, out)
		}
	}
	if args := onArgs(place{processors: []int{0, 2, 3}}, "program"); args[1] != "0,2,3" {
		t.Errorf("three processors: %q", args)
	}
	for _, args := range [][]string{nil, {"0"}, {"0", "0"}, {"x", "0", "grep"}, {"0", "x", "grep"}, {"0", "0", "no such program"}} {
		if on(t.Context(), args) == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// A program that is to be nice is.
func TestOnNice(t *testing.T) {
	if list := os.Getenv("BENCH_ON"); list != "" {
		t.Fatal(on(t.Context(), []string{list, "3", "nice"}))
	}
	before, err := exec.CommandContext(t.Context(), "nice").Output()
	if err != nil {
		t.Skipf("no niceness is told here: %v", err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestOnNice$")
	child.Env = append(os.Environ(), "BENCH_ON="+fmt.Sprint(processors()[0]))
	out, err := child.CombinedOutput()
	if want := "3"; err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("a niceness of %s in place of %s: %v\n%s", want, strings.TrimSpace(string(before)), err, out)
	}
}

// The nicest program has what others leave.
func TestOnNicest(t *testing.T) {
	if list := os.Getenv("BENCH_ON"); list != "" {
		t.Fatal(on(t.Context(), []string{list, fmt.Sprint(nicest), "cat", "/proc/self/stat"})) // returns only if it cannot
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestOnNicest$")
	child.Env = append(os.Environ(), "BENCH_ON="+fmt.Sprint(processors()[0]))
	out, err := child.CombinedOutput()
	const policy, idle = 40, "5" // the place of the scheduling policy in the line
	if fields := strings.Fields(string(out)); err != nil || len(fields) <= policy || fields[policy] != idle {
		t.Errorf("%v\n%s", err, out)
	}
}

// All threads stay where they are told to, also those that others are about to start, and the scheduler has no more
// processors; afterwards all is as it was.
func TestStayOn(t *testing.T) {
	all := processors()
	for _, on := range [][]int{all[:1], all} {
		if err := stayOn(on); err != nil {
			t.Fatal(err)
		}
		release := make(chan bool)
		for range 20 { // threads of their own
			started := make(chan bool)
			go func() {
				runtime.LockOSThread()
				close(started)
				<-release
			}()
			<-started
		}
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(id, &set); err == nil && set != *setOf(on) {
				t.Errorf("thread %d is on %d processors, not on %v", id, set.Count(), on)
			}
		}
		close(release)
		if n := runtime.GOMAXPROCS(0); n != len(on) {
			t.Errorf("the scheduler has %d processors, not %d", n, len(on))
		}
	}
}
