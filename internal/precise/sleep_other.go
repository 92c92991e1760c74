//go:build !linux

package precise

import "time"

// SleepUntil returns at t, or some time after it.
func SleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
