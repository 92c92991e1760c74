package doctor

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/server"
)

// A clock that is wrong by what the fan finds is told by how much, exactly, and
// which way.
func TestWrongClock(t *testing.T) {
	for _, off := range []time.Duration{
		30 * time.Second, 3 * time.Minute, 7*time.Minute + 13*time.Second + 77*time.Millisecond, time.Hour,
		5*time.Hour + 30*time.Minute, 5*time.Hour + 45*time.Minute, 24 * time.Hour, 7 * 24 * time.Hour,
	} {
		for _, off := range []time.Duration{off, -off} {
			t.Run(off.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					s := w.serve("10.0.0.1:29292")
					w.off = off
					r := w.run(w.config(s))
					w.want(r, NoDecision, "clock")
					e := r.Servers[0].Endpoints[0]
					if got := time.Duration(e.Offset); e.State != Clock || (got+off).Abs() > 2*time.Millisecond {
						t.Errorf("%s: the server's clock is %v, want %v", e.State, got, -off)
					}
					if off.Abs() < time.Minute && e.Fan.Sent > 20 {
						t.Errorf("%d stamps after the answer was there", e.Fan.Sent)
					}
					w.says(r, "clock", map[bool]string{true: "is " + exact(Millis(off)) + " ahead of", false: "is " + exact(Millis(off)) + " behind that of"}[off > 0])
					w.says(r, "clock", map[bool]string{true: "clock back by", false: "clock forward by"}[off > 0])
					if zone := off.Abs()%fanQuarter == 0 && off.Abs() < day; zone {
						w.says(r, "clock", "time zone")
					} else if slices.ContainsFunc(r.Diagnoses, func(d Diagnosis) bool { return len(d.Says) > 300 }) {
						t.Error("a time zone is suspected")
					}
				})
			})
		}
	}
}

// What the fan does not find is not taken for something else, and is named among
// what it may be.
func TestClockThatTheFanMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.off = 37*time.Minute + 20*time.Second
		r := w.run(w.config(s))
		w.want(r, NoDecision, "silent")
		w.says(r, "silent", "a clock that is off by what was not tried", "stale")
	})
}

// Every offset up to a quarter of an hour is found, at the usual skew.
func TestFanHasNoGap(t *testing.T) {
	shifts := fan()
	for off := -fanDense; off <= fanDense; off += 500 * time.Millisecond {
		if off.Abs() > skew && !slices.ContainsFunc(shifts, func(s time.Duration) bool { return (s - off).Abs() <= skew }) {
			t.Errorf("%v is not found", off)
		}
	}
	if n := len(shifts); n > 320 {
		t.Errorf("%d datagrams", n)
	}
}

// A server that allows less than usual is answered in the gap between the stamp of
// now and ten seconds.
func TestSmallSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serveWith(func(c *server.Config) { c.Skew = time.Second }, "10.0.0.1:29292")
		w.off = 3 * time.Second
		r := w.run(w.config(s))
		w.want(r, NoDecision, "clock")
		w.says(r, "clock", "3s ahead of", "allows less than that (--skew)")
	})
}

// A clock that is off but answered is noted.
func TestClockClose(t *testing.T) {
	for _, off := range []time.Duration{3 * time.Second, -3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := w.serve("10.0.0.1:29292")
			w.off = off
			r := w.run(w.config(s))
			w.want(r, Well, "clock-close")
			w.says(r, "clock-close", map[bool]string{true: "3s ahead of", false: "3s behind"}[off > 0])
		})
	}
}

// A server answers nothing that is stamped before its start, so a clock that is
// allowed to be behind is not answered at first.
func TestFloorAfterRestart(t *testing.T) {
	for _, c := range []struct {
		age     time.Duration
		verdict Verdict
	}{
		{500 * time.Millisecond, NoDecision},
		{3500 * time.Millisecond, Degraded}, // the server is old enough before the end
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.off, w.age = -4*time.Second, c.age
			r := w.run(w.config(w.serve("10.0.0.1:29292")))
			w.want(r, c.verdict, "floor")
			w.says(r, "floor", "4s behind", "only just started", "Wait")
		})
	}
}

// The clock of one server of several is wrong: the others say whose.
func TestServersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.serve("10.0.0.1:29292")
		b := w.serveWith(func(c *server.Config) { c.Clock = clock{time.Hour} }, "10.0.0.2:29292")
		r := w.run(w.config(a, b))
		w.want(r, Degraded, "server-clock")
		w.says(r, "server-clock", b.ID.String(), "1h ahead of", "Set the clock of that server")
	})
}

// Of several answers that of the shortest round trip tells the clock.
func TestOffsetOfTheShortestTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		n := 0
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			if n++; p.From == s.Addrs[0] && n == 2 {
				return udp.Fate{Delay: 10 * time.Millisecond} // the first, on the way back only
			}
			return udp.Fate{}
		})
		if e := w.run(w.config(s)).Servers[0].Endpoints[0]; e.Offset != 0 {
			t.Errorf("the clock is %v", time.Duration(e.Offset))
		}
	})
}

// Two servers whose clocks are wrong in two ways are told apart.
func TestClocksThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ahead := func(d time.Duration) func(*server.Config) {
			return func(c *server.Config) { c.Clock = clock{d} }
		}
		a, b := w.serveWith(ahead(time.Hour), "10.0.0.1:29292"), w.serveWith(ahead(-time.Minute), "10.0.0.2:29292")
		r := w.run(w.config(a, b))
		w.want(r, NoDecision, "clock", "clock")
		for i, words := range []string{"1m ahead of that of server " + b.ID.String(), "1h behind that of server " + a.ID.String()} {
			if !strings.Contains(r.Diagnoses[i].Says, words) || !strings.Contains(r.Diagnoses[i].Unsure, "No other server") {
				t.Errorf("%+v", r.Diagnoses[i])
			}
		}
	})
}
