package weir

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/core"
)

// TimeoutError is the error of a request that no server's answer decided in
// time. It matches [ErrTimeout]. A server never says that a key, a clock or a
// datagram is wrong: it is silent. So the error tells what the client saw and
// what that may mean.
type TimeoutError struct {
	Elapsed time.Duration // from the first send
	Seen    core.Seen     // servers asked; datagrams received, and why each did not count
}

// Is reports whether target is [ErrTimeout].
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Timeout returns true. It is the method by which net.Error and others tell.
func (e *TimeoutError) Timeout() bool { return true }

// hints says what a datagram that did not count points to.
var hints = [core.DatagramVerdicts]string{
	core.DatagramCounted:   "counted",
	core.DatagramLate:      "too late",
	core.DatagramDuplicate: "repeated",
	core.DatagramExpired:   "after the horizon (a slow path or server: lengthen the policy)",
	core.DatagramMalformed: "malformed (something else answers at that port)",
	core.DatagramMode:      "in another authentication mode (the server has another key)",
	core.DatagramUnknown:   "to no question of ours that is open (after the horizon, from a slow path or server: lengthen the policy)",
	core.DatagramForged:    "not authentic (the server has another key, or someone forges)",
	core.DatagramNotAnswer: "no answers but requests (something reflects ours)",
	core.DatagramStranger:  "from servers that were not asked (a restarted server, and discovery has not seen it yet)",
	core.DatagramMismatch:  "answering something else than was asked (a faulty server, or another layout)",
}

// Error lists what was asked, what came in, and what could be wrong.
func (e *TimeoutError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v: asked %s at %s for %v", ErrTimeout,
		number(e.Seen.Servers, "server"), number(e.Seen.Endpoints, "address"), e.Elapsed.Round(time.Microsecond))
	if n := e.Seen.SendFailures; n > 0 {
		fmt.Fprintf(&s, ", %s could not be sent", number(int(n), "datagram"))
	}
	received := 0
	for verdict, n := range e.Seen.Datagrams {
		if n > 0 {
			fmt.Fprintf(&s, "; received %d %s", n, hints[verdict])
			received++
		}
	}
	if received == 0 {
		s.WriteString("; received nothing")
	}
	s.WriteString("; possible causes: the servers are down or overloaded, they do not know this key," +
		" this clock is off by more than they allow (5 s unless configured), or the path blocks UDP")
	return s.String()
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
