package server

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weirhq/weir/limiter"
)

// Clock tells a server the time: the monotonic reading that the engine counts in and
// the wall clock's, both of one instant. It must be safe for concurrent use. The
// monotonic reading may have any origin.
type Clock interface {
	Now() limiter.Time
}

// systemClock is the machine's clock. Its monotonic origin is when it was made.
type systemClock struct{ origin time.Time }

func (c systemClock) Now() limiter.Time {
	now := time.Now()
	return limiter.Time{Mono: int64(now.Sub(c.origin)), Wall: uint64(max(0, now.UnixMilli()))}
}

// releaseFloor is a time at which this source already existed. A build that carries
// the time of its commit knows better.
var releaseFloor = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// buildTime returns a time before which this program cannot have run: that of the
// commit it was built from, where the build recorded it, else releaseFloor.
func buildTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return releaseFloor
	}
	return builtAt(info.Settings)
}

// builtAt is buildTime for a build with these settings.
func builtAt(settings []debug.BuildSetting) time.Time {
	for _, s := range settings {
		if s.Key != "vcs.time" {
			continue
		}
		if t, err := time.Parse(time.RFC3339, s.Value); err == nil && t.After(releaseFloor) {
			return t
		}
	}
	return releaseFloor
}

// checkStart refuses a wall clock that is certainly wrong: a server whose ID says that
// it started before it was built would be everybody's oldest, and asked first, forever.
func checkStart(wall, built time.Time) error {
	if wall.Before(built) {
		return fmt.Errorf("server: the clock says %s, but this program was built at %s; set the clock and start again",
			wall.UTC().Format(time.RFC3339), built.UTC().Format(time.RFC3339))
	}
	return nil
}
