package children

import (
	"os"
	"syscall"
)

// apart puts a child into a process group of its own, so that Ctrl-C at the
// console reaches only the parent, which then ends the children in order.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills a child; our children start nothing themselves.
func killGroup(p *os.Process) error { return p.Kill() }
