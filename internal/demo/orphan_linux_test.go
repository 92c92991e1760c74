package demo

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A demo that is killed without a word cannot stop its children: they stop by
// themselves.
func TestKilledDemoLeavesNoProcess(t *testing.T) {
	// Orphans come to this process, which can then wait for their end.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip("no subreaper on this system: ", err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	c := startCommand(t)
	c.readUntil(t, "2/6")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err == nil {
		t.Error("the demo was not killed")
	}
	if len(c.pids) != 3 {
		t.Fatalf("processes %v", c.pids)
	}
	for _, pid := range c.pids {
		for {
			_, err := syscall.Wait4(pid, nil, 0, nil) // returns when it has ended
			if err == syscall.EINTR {
				continue
			}
			if err != nil {
				t.Errorf("waiting for process %d: %v", pid, err)
			}
			break
		}
	}
	// The files are what only a living process can remove.
	if err := os.RemoveAll(c.dir); err != nil {
		t.Error(err)
	}
}
