package weir

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Readers that get no processor do not keep a client failing fast: the answer to a
// probe, which no caller waits for, is handed in before its timers too.
func TestProbesAreHeardByStarvedReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := &starved{NetworkHost: w.host}
		w.stack = h
		c := w.client(failingAfter(1, time.Second))
		w.silence(0)
		if _, err := took(c); !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		h.now.Store(true)
		w.speak()
		pass(1600 * time.Millisecond)
		if _, err := took(c); err != nil {
			t.Error(err)
		}
		h.now.Store(false)
	})
}
