package server

import (
	"testing"
	"time"
)

func TestStartBeforeTheBuild(t *testing.T) {
	built := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	if err := checkStart(built, built); err != nil {
		t.Error(err)
	}
	const want = "server: the clock says 2026-11-30T11:59:59Z, but this program was built at 2026-11-30T12:00:00Z; set the clock and start again"
	if err := checkStart(built.Add(-time.Second), built); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestBuildTime(t *testing.T) {
	if b := buildTime(); b.Before(releaseFloor) || b.After(time.Now()) {
		t.Errorf("built at %v", b)
	}
}

// The machine's clock gives both readings of one instant, and the monotonic one does
// not go back.
func TestSystemClock(t *testing.T) {
	c := systemClock{origin: time.Now()}
	last := c.Now()
	for range 1000 {
		now := c.Now()
		if now.Mono < last.Mono {
			t.Fatalf("the monotonic reading went from %d to %d", last.Mono, now.Mono)
		}
		last = now
	}
	if d := time.Since(time.UnixMilli(int64(last.Wall))); d < 0 || d > patience {
		t.Errorf("the wall clock is %v off", d)
	}
}
