package weir

import (
	"time"

	"github.com/weirhq/weir/core"
)

// systemClock returns the two clocks of the core, of one reading each time: the
// monotonic one since now, for deadlines, and the wall clock, for datagrams.
func systemClock() func() core.Time {
	origin := time.Now()
	return func() core.Time {
		t := time.Now()
		return core.Time{Mono: t.Sub(origin), Wall: t.UnixMilli()}
	}
}
