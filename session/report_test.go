package session

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/internal/udp"
)

var zeroKey apikey.Key

func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		h := w.session()
		var err error
		if h.State, err = Report(h.State, w.key, inventory.Took(18*ms), inventory.Took(-1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, s := range w.servers {
			l := s.Log()
			if len(l.Reports) != 2 || l.Reports[0].Latency != 18 || l.Reports[1].Latency != 0 || l.Reports[0].Tracker != inventory.ID() {
				t.Errorf("server %v was told %+v", s.ID, l.Reports)
			}
		}
		w.net.SetLink(func(udp.Packet) udp.Fate { return udp.Fate{Drop: true} })
		if h.State, err = Report(h.State, w.key, inventory.Took(ms)); err != nil {
			t.Errorf("what is lost is no error: %v", err)
		}
		w.net.SetLink(func(udp.Packet) udp.Fate { return udp.Fate{Err: errNameServer} })
		if h.State, err = Report(h.State, w.key, inventory.Took(ms)); err != nil || h.Stats().SendFailures[core.SendReport] != 2 {
			t.Errorf("%v, %+v", err, h.Stats())
		}
		for field, obs := range map[string][]weir.Observation{"Observations[0].Tracker": {{}}, "Observations": nil} {
			var config *weir.ConfigError
			if h.State, err = Report(h.State, w.key, obs...); !errors.As(err, &config) || config.Field != field {
				t.Errorf("%v, want one about %s", err, field)
			}
		}
	})
}

// A report looks nothing up; what it would have needed, the next request does.
func TestReportWithoutServers(t *testing.T) {
	for name, idle := range map[string]time.Duration{"soon": 0, "much later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.zone.Set(domain, time.Minute, w.members()...)
				h := w.session(w.discovered)
				for range 3 {
					var err error
					if h.State, err = Report(h.State, w.key, inventory.Took(ms)); !errors.Is(err, weir.ErrNoServers) {
						t.Error(err)
					}
				}
				if n := w.rounds(); n != 0 {
					t.Errorf("looked up %d times", n)
				}
				time.Sleep(idle)
				h.grant()
				var err error
				if h.State, err = Report(h.State, w.key, inventory.Took(ms)); err != nil || w.rounds() != 1 {
					t.Errorf("%v; looked up %d times", err, w.rounds())
				}
			})
		})
	}
}
