package children

import "syscall"

// apart puts a child into a process group of its own, so that Ctrl-C at the
// terminal reaches only the parent, which then ends the children in order; and
// has the kernel kill it when the parent dies without having done so.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
