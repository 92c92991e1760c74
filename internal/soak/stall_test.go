package soak

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	tick    = time.Millisecond
	stalled = 10 * time.Millisecond // later than that is a stall
)

// stall is a time in which a goroutine that was due did not run: the machine had
// no processor for this process, or the process none for the goroutine.
type stall struct {
	from time.Time
	took time.Duration
}

func (s stall) String() string { return fmt.Sprintf("%v at %s", s.took, s.from.Format("15:04:05.000")) }

// stallWatch is a goroutine that wants to run every millisecond.
type stallWatch struct {
	stop   chan struct{}
	stalls chan []stall
}

func watchStalls() *stallWatch {
	w := &stallWatch{stop: make(chan struct{}), stalls: make(chan []stall, 1)}
	go func() {
		var stalls []stall
		for {
			due := time.Now().Add(tick)
			select {
			case <-time.After(tick):
			case <-w.stop:
				w.stalls <- stalls
				return
			}
			if late := time.Since(due); late >= stalled {
				stalls = append(stalls, stall{due, late})
			}
		}
	}()
	return w
}

// end returns the stalls in their order.
func (w *stallWatch) end() []stall {
	close(w.stop)
	return <-w.stalls
}

// longest returns the n longest, the longest first.
func longest(stalls []stall, n int) []stall {
	stalls = slices.Clone(stalls)
	slices.SortFunc(stalls, func(a, b stall) int { return cmp.Compare(b.took, a.took) })
	return stalls[:min(n, len(stalls))]
}

// within returns the stalls between two instants.
func within(stalls []stall, from, to time.Time) []stall {
	return slices.DeleteFunc(slices.Clone(stalls), func(s stall) bool {
		return s.from.After(to) || s.from.Add(s.took).Before(from)
	})
}
