//go:build !windows

package doctor

import "syscall"

// The errors by which the system tells of ICMP's "port unreachable", and of its own
// refusal to send. Others say that there is no way to the host.
var (
	closedErrors  = []syscall.Errno{syscall.ECONNREFUSED}
	blockedErrors = []syscall.Errno{syscall.EPERM, syscall.EACCES}
)
