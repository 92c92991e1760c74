package server

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
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
	for stamp, want := range map[string]time.Time{
		"2026-11-02T03:04:05Z":      time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC),
		"2026-10-02T03:04:05Z":      releaseFloor, // a commit may say what it likes
		"2026-11-02T03:04:05+02:00": time.Date(2026, 11, 2, 1, 4, 5, 0, time.UTC),
		"yesterday":                 releaseFloor,
	} {
		settings := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.time", Value: stamp}}
		if got := builtAt(settings); !got.Equal(want) {
			t.Errorf("%s: built at %v, want %v", stamp, got, want)
		}
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

// Windows are counted by the monotonic clock, whatever happens to the wall clock. Where it
// jumps ahead and back, clients with it, all are answered. Where it is set back they are if
// it is by no more than the skew; else they look as old as what is forgotten, and are
// dropped (floor), until the time has come again that was before.
func TestWallClockSteps(t *testing.T) {
	const second = 1000 // ms
	key := newKey(t, apikey.AuthAES, 7)
	clock := newFakeClock()
	step := func(ms int64) {
		clock.mu.Lock()
		defer clock.mu.Unlock()
		clock.now.Wall = uint64(int64(clock.now.Wall) + ms)
	}
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	bucket := func() *wire.Request {
		r := checkout(1)
		r.Guards = nil
		r.Resources[0].Window, r.Resources[0].Rate = 60*second, 1000
		return r
	}
	asked := 0
	ask := func() (rate uint32, ok bool) {
		c.next()
		c.header.Timestamp = clock.Now().Wall
		b := w.ask(c.request(bucket()))
		if b == nil {
			return 0, false
		}
		asked++
		r := c.open(b, wire.Layout2)
		return r.view.Resource(0).Rate, true
	}
	for range 4 { // for longer than anything is remembered
		clock.advance(5 * time.Second)
		if _, ok := ask(); !ok {
			t.Fatalf("no answer; dropped: %s", drops(w))
		}
	}
	captured := c.request(bucket())
	for _, jump := range []int64{-5 * second, 5 * second, 3600 * second, -3600 * second} {
		step(jump)
		clock.advance(100 * time.Millisecond) // more than a dedup TTL
		if rate, ok := ask(); !ok || rate != uint32(asked) {
			t.Errorf("set by %d ms: answered: %v, rate %d of %d; dropped: %s", jump, ok, rate, asked, drops(w))
		}
	}
	w.ask(captured)
	if rate, ok := ask(); !ok || rate != uint32(asked) {
		t.Errorf("what was captured is executed again: rate %d of %d", rate, asked)
	}
	clock.advance(10 * time.Second)
	if _, ok := ask(); !ok {
		t.Errorf("no answer before the clock is set back; dropped: %s", drops(w))
	}
	before := dropCounts(w)["floor"]
	step(-10 * second)
	if _, ok := ask(); ok || dropCounts(w)["floor"] != before+1 {
		t.Errorf("set back by more than the skew: answered: %v; dropped: %s", ok, drops(w))
	}
	clock.advance(10 * time.Second)
	if rate, ok := ask(); !ok || rate != uint32(asked) {
		t.Errorf("when the time has come again: answered: %v, rate %d of %d; dropped: %s", ok, rate, asked, drops(w))
	}
}
