package server

import "golang.org/x/sys/unix"

// clockUnsynchronized reports whether the kernel says that nothing keeps its clock
// right. Where it cannot be asked (some sandboxes forbid it), nothing is known against
// the clock.
func clockUnsynchronized() bool {
	var t unix.Timex // no mode bits: only reads
	state, err := unix.Adjtimex(&t)
	return err == nil && (state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0)
}
