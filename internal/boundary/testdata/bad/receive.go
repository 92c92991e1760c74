// Package bad receives from a channel, whose type it does not spell out.
package bad

import "time"

func receive(t *time.Ticker) time.Time {
	return <-t.C
}
