//go:build unix && !linux

package children

import "syscall"

// apart puts a child into a process group of its own, so that Ctrl-C at the
// terminal reaches only the parent, which then ends the children in order.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
