//go:build unix

package udp

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// roomWait is how long a write waits for room in the send buffer. Traffic that is
// only dense leaves room sooner.
const roomWait = 5 * time.Millisecond

// patience waits for room in a socket's send buffer, and never for long. The standard
// library's way waits until there is some, which may be for seconds: what goes to a
// neighbor that is dead stays in it until the system gives up asking for its hardware
// address, and keeps out what is for the living.
type patience struct {
	patient bool // an attempt waits for room
	full    bool // it was waited in vain, and nothing was sent since
}

// send makes one attempt, and another with patience if there was no room. While
// nobody gets anything sent nobody waits again. The attempt leaves its error in failed.
func (p *patience) send(conn descriptor, raw syscall.RawConn, attempt func(fd uintptr) bool, failed *error) error {
	err := p.sendOrWait(conn, raw, attempt, failed)
	if errors.Is(err, unix.EAGAIN) {
		return errFull
	}
	if err == nil {
		p.full = false
	}
	return err
}

func (p *patience) sendOrWait(conn descriptor, raw syscall.RawConn, attempt func(fd uintptr) bool, failed *error) error {
	p.patient = false
	if err := raw.Write(attempt); err != nil {
		return err
	}
	if p.full || !errors.Is(*failed, unix.EAGAIN) {
		return *failed
	}
	p.patient = true
	if err := conn.SetWriteDeadline(time.Now().Add(roomWait)); err != nil {
		return err
	}
	err := raw.Write(attempt)
	if err := conn.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.full = true
		return unix.EAGAIN
	}
	if err != nil {
		return err
	}
	return *failed
}

// enough reports whether an attempt that ended with err was the last one.
func (p *patience) enough(err error) bool { return !p.patient || !errors.Is(err, unix.EAGAIN) }
