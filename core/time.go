package core

import "time"

// Time is the instant of a call. The two clocks are apart on purpose: deadlines
// use Mono alone, and Wall only dates datagrams and tells which server IDs lie
// in the future, so that a step of the wall clock neither fires nor starves a
// deadline.
type Time struct {
	// Mono is the monotonic clock since any fixed origin. A reading below an
	// earlier one counts as that earlier one. At most 1<<61 ns (73 years).
	Mono time.Duration
	// Wall is the Unix time in milliseconds. A negative one counts as 0.
	Wall int64
}

// maxMono keeps an instant plus the longest horizon or refresh interval inside
// a Duration.
const maxMono = time.Duration(1) << 61

// advance takes the time of a call: it never goes back.
func (c *Core) advance(now Time) time.Duration {
	c.wall = max(now.Wall, 0)
	mono := min(now.Mono, maxMono)
	if !c.started || mono > c.mono {
		c.started = true
		c.mono = max(mono, -maxMono)
	}
	return c.mono
}
