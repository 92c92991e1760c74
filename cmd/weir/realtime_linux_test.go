package main

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Under a real-time policy the scheduler has no processor more than there are.
func TestServeRealTime(t *testing.T) {
	runtime.LockOSThread() // and the thread ends with this goroutine
	t.Setenv("GOMAXPROCS", "")
	attr := unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Policy: unix.SCHED_RR, Priority: 1}
	switch err := unix.SchedSetAttr(0, &attr, 0); {
	case errors.Is(err, unix.EPERM):
		t.Skip("this user may not have real-time threads")
	case err != nil:
		t.Fatal(err)
	}
	if !realTime() {
		t.Error("a real-time thread is not known as one")
	}
	if workers, scheduler := servedProcessors(t); scheduler != workers {
		t.Errorf("the scheduler has %d processors, for %d workers", scheduler, workers)
	}
}
