//go:build unix

package demo

import "syscall"

// alive reports whether there is such a process, a dead one that nobody waited
// for included.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
