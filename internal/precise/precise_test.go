package precise

import (
	"testing"
	"time"
)

// It never returns early, also where signals end the system's sleep, and at once when it is late already.
func TestNotEarly(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, 0, time.Microsecond, 300 * time.Microsecond, 30 * time.Millisecond} {
		for range 5 {
			at := time.Now().Add(d)
			if SleepUntil(at); time.Now().Before(at) {
				t.Fatalf("it was early by %v", time.Until(at))
			}
			from := time.Now()
			if Sleep(d); time.Since(from) < d {
				t.Fatalf("it slept %v of %v", time.Since(from), d)
			}
		}
	}
}
