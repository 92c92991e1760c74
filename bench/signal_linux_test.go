package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Whatever ends a run but a kill, such as its terminal that is gone, leaves no files: and what has no reader any more
// is not a sudden end.
func TestSignalsLeaveNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		run := exec.CommandContext(t.Context(), self, neighborCommand)
		run.Env = append(os.Environ(), "TMPDIR="+dir)
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- run.Wait() }()
		for left := 0; left == 0; {
			select {
			case err := <-ended:
				t.Fatalf("it ended by itself: %v", err)
			case <-time.After(time.Millisecond): // until it builds
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			left = len(entries)
		}
		for _, s := range []syscall.Signal{syscall.SIGPIPE, sig} {
			if err := run.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
		var exit *exec.ExitError
		if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("after %v: %v, want exit status 2", sig, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("after %v: %v is left, %v", sig, entries, err)
		}
	}
}
