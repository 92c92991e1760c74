package doctor

import "syscall"

// The errors by which the system tells of ICMP's "port unreachable" (a reset or a
// refused connection), and of its own refusal to send. Others say that there is no
// way to the host.
var (
	closedErrors  = []syscall.Errno{10054, 10061}
	blockedErrors = []syscall.Errno{10013}
)
