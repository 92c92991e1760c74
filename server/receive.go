package server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/udp"
)

// ReceiveBuffer is how much of what comes in faster than it is answered may wait: what
// comes in a time, at a rate of datagrams a second, all workers of an address together.
// Its text form is TIME@RATE, such as 50ms@100000.
type ReceiveBuffer struct {
	// Wait is from 1 ms to 1 min. Clients give up after their policy's horizon, 60 ms by
	// default, and what waited for longer is dropped (late) or of no use to anybody.
	Wait time.Duration
	Rate int // from 1 to 10^9
}

// The bounds of a ReceiveBuffer. Less than two batches for each worker is given to none.
const (
	minReceiveWait     = time.Millisecond
	maxReceiveWait     = time.Minute
	maxReceiveRate     = 1_000_000_000
	leastHeld          = 2 * batchSize
	maxReceiveBufferOf = 1<<30 - 1 // bytes of one socket: what the systems' numbers can double
)

// String returns the text form.
func (b ReceiveBuffer) String() string { return b.Wait.String() + "@" + strconv.Itoa(b.Rate) }

// UnmarshalText reads the text form. It does not check bounds, as [New] does, but what is
// not above 0 is an error.
func (b *ReceiveBuffer) UnmarshalText(text []byte) error {
	wait, rate, ok := strings.Cut(string(text), "@")
	d, err := time.ParseDuration(wait)
	if !ok || err != nil || d <= 0 {
		return fmt.Errorf("%q is no time at a rate, such as %v: for how long, at so many datagrams a second", text, defaultReceiveBuffer)
	}
	n, err := strconv.Atoi(rate)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no number of datagrams a second, such as the one in %v", rate, defaultReceiveBuffer)
	}
	*b = ReceiveBuffer{Wait: d, Rate: n}
	return nil
}

// check returns what is wrong with the bounds, or with the bytes that each of so many
// workers would need.
func (b ReceiveBuffer) check(workers int) error {
	switch {
	case b.Wait < minReceiveWait || b.Wait > maxReceiveWait:
		return fmt.Errorf("%v is not from %v to %v", b.Wait, minReceiveWait, maxReceiveWait)
	case b.Rate < 1 || b.Rate > maxReceiveRate:
		return fmt.Errorf("%d datagrams a second are not from 1 to %d", b.Rate, maxReceiveRate)
	case b.bytes(workers)/workers > maxReceiveBufferOf:
		return errors.New("more than 1 GiB for each worker; give a shorter time or a lower rate")
	}
	return nil
}

// datagrams returns how many can come in the time, rounded up.
func (b ReceiveBuffer) datagrams() int {
	perMillion := b.Wait.Microseconds() * int64(b.Rate)
	return int((perMillion + 999_999) / 1_000_000)
}

// bytes returns the size of the buffers of one address's workers together.
func (b ReceiveBuffer) bytes(workers int) int {
	each := max((b.datagrams()+workers-1)/workers, leastHeld)
	return udp.ReadBufferFor(each) * workers
}

// receiveBuffer is what the system gave the workers of one address.
type receiveBuffer struct {
	asked, given int // bytes for each worker
	workers      int
}

// holds says what the workers' buffers are enough for: for how long at the rate that was
// asked for, and at what rate for that long.
func (r receiveBuffer) holds(b ReceiveBuffer) (short, slow ReceiveBuffer) {
	n := udp.HeldBy(r.given) * r.workers
	wait := time.Duration(float64(n) / float64(b.Rate) * float64(time.Second))
	return ReceiveBuffer{wait.Round(10 * time.Microsecond), b.Rate}, ReceiveBuffer{b.Wait, int(float64(n) / b.Wait.Seconds())}
}

// smallestBuffer returns the receive buffer that falls shortest of what was asked for;
// ok is false if none does, or the system does not tell.
func (s *Server) smallestBuffer() (smallest receiveBuffer, ok bool) {
	for _, l := range s.listeners {
		n := len(l.workers)
		asked := s.settings.ReceiveBuffer.bytes(n) / n
		for _, w := range l.workers {
			given := w.conn.ReadBuffer()
			if given > 0 && given < asked && (!ok || given < smallest.given) {
				smallest, ok = receiveBuffer{asked: asked, given: given, workers: n}, true
			}
		}
	}
	return smallest, ok
}

// warnOfBuffer says that the system gave smaller receive buffers than were asked for, and
// what to do. Nobody who tries a server out on loopback needs the default.
func (s *Server) warnOfBuffer() {
	asked := s.settings.ReceiveBuffer
	smallest, ok := s.smallestBuffer()
	if _, exposed := s.settings.exposed(); !ok || asked == defaultReceiveBuffer && !exposed {
		return
	}
	short, slow := smallest.holds(asked)
	s.log.Warn(fmt.Sprintf("the system allows smaller receive buffers than asked for; set %s to at least %d, or ask for less",
		udp.ReadBufferSetting, smallest.asked),
		"receive_buffer", asked.String(), "bytes_asked", smallest.asked, "bytes_given", smallest.given,
		"enough_for", short.String(), "or_for", slow.String())
}
