// Package bad reads the clock under another name.
package bad

import clock "time"

func age(t clock.Time) clock.Duration {
	return clock.Since(t)
}
