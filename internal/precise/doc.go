// Package precise waits for an instant more exactly than the runtime's timers do, which are late by
// tens of microseconds to a millisecond on a machine at rest. It is for what sends at a rate.
package precise

import "time"

// Sleep returns after d, or some time later, as [SleepUntil] does.
func Sleep(d time.Duration) { SleepUntil(time.Now().Add(d)) }
