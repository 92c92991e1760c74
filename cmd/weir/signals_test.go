package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A SIGTERM on the heels of the first signal is the same request; a later one insists, and
// so does an interrupt at any time.
func TestUntilInsisted(t *testing.T) {
	type step struct {
		after time.Duration
		sig   os.Signal
	}
	for name, c := range map[string]struct {
		steps []step
		want  time.Duration // when it insists
	}{
		"echo":                 {[]step{{0, syscall.SIGTERM}, {0, syscall.SIGTERM}, {999 * time.Millisecond, syscall.SIGTERM}, {time.Millisecond, syscall.SIGTERM}}, time.Second},
		"interrupt":            {[]step{{0, os.Interrupt}, {0, os.Interrupt}}, 0},
		"interrupt after TERM": {[]step{{0, syscall.SIGTERM}, {time.Millisecond, os.Interrupt}}, time.Millisecond},
		"TERM after interrupt": {[]step{{0, os.Interrupt}, {time.Millisecond, syscall.SIGTERM}, {2 * time.Second, syscall.SIGTERM}}, 2*time.Second + time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				go func() {
					for _, s := range c.steps {
						time.Sleep(s.after)
						signals <- s.sig
					}
				}()
				began, asked := time.Now(), 0
				sig := untilInsisted(signals, func(os.Signal) { asked++ })
				if got := time.Since(began); got != c.want || asked != 1 || sig != c.steps[len(c.steps)-1].sig {
					t.Errorf("%v insists after %v, want %v; asked %d times", sig, got, c.want, asked)
				}
			})
		})
	}
}
