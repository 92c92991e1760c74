//go:build unix

package children

import (
	"os"
	"syscall"
)

// killGroup kills a child and whatever it started.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return err
}
