// Package bad ranges over a channel, whose type it does not spell out.
package bad

import "time"

func drain(t *time.Ticker) {
	for range t.C {
		return
	}
}
