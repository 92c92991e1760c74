//go:build unix

package udp

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ahead reads what is there past the goroutine that waits in Read. The standard
// library gives that one a lock for as long as it waits, and it may have been
// woken and have no processor yet. The zero value is ready.
type ahead struct {
	mu   sync.Mutex
	raw  syscall.RawConn
	take func(fd uintptr) // takeAll, made once
	into []Datagram
	n    int

	bursts func(ds []Datagram) int // reads, where datagrams come in bursts
}

// read fills ds with what a socket has and returns how many datagrams that is.
func (a *ahead) read(c descriptor, ds []Datagram) int {
	if a.bursts != nil {
		return a.bursts(ds)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.raw == nil {
		raw, err := c.SyscallConn()
		if err != nil {
			return 0
		}
		a.raw, a.take = raw, a.takeAll
	}
	a.into, a.n = ds, 0
	_ = a.raw.Control(a.take) // of a socket that was closed nothing is read
	a.into = nil
	return a.n
}

// takeAll is called with the descriptor, which does not block.
func (a *ahead) takeAll(fd uintptr) {
	for a.n < len(a.into) {
		d := &a.into[a.n]
		n, err := unix.Read(int(fd), d.Buf) // without the sender's address, which costs an allocation
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		*d = Datagram{Buf: d.Buf, N: n}
		a.n++
	}
}
