package doctor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
)

func TestWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b, c := w.serve("10.0.0.1:29292", "[fd00::1]:29292"), w.serve("10.0.0.2:29292"), w.serve("10.0.0.3:29292")
		z := named(c, b, a)
		r := w.run(w.lookedUp(z))
		w.want(r, Well)
		if z.asked != 1 {
			t.Errorf("DNS was asked %d times", z.asked)
		}
		if len(r.Servers) != 3 || r.Servers[0].ID != a.ID || !r.Servers[0].Oldest || r.Servers[1].Oldest || len(r.Servers[0].Endpoints) != 2 {
			t.Errorf("%+v", r.Servers)
		}
		if age := time.Duration(r.Servers[2].Age).Round(time.Second); age != 10*time.Minute {
			t.Errorf("the youngest is %v old", age)
		}
		for _, s := range w.all(r) {
			if s.State != Answers || s.Sent != DefaultProbes || s.Lost != 0 || s.Long.Answered != longs || s.Long.Bytes < 1170 || s.Offset != 0 || s.Fan != nil {
				t.Errorf("%+v", s.Endpoint)
			}
		}
		if p := r.Path; p.Asked != acquires || p.Decided != acquires || len(p.By) != 1 || p.By[0] != a.ID {
			t.Errorf("%+v", p)
		}
	})
}

func (w *world) all(r *Report) []spot {
	x := examination{report: *r}
	return x.spots(func(*Endpoint) bool { return true })
}

// Every request is for nothing, in every kind that is sent, and as many as are
// promised.
func TestAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := 0
		s := w.respond("10.0.0.1:29292", func(a *asked) []byte {
			n++
			for i := range a.request.Resources() {
				if r := a.request.Resource(i); r.Tokens != 0 || r.Window != 1 {
					t.Errorf("%+v", r)
				}
			}
			if a.request.Label() != nil || a.request.DedupTTL == 0 || a.request.DedupTTL > 60 {
				t.Errorf("dedup TTL %d, label %q", a.request.DedupTTL, a.request.Label())
			}
			return nil
		})
		w.want(w.run(w.config(s)), NoDecision, "silent")
		synctest.Wait()
		if most := DefaultProbes + 3 + again + len(fan()) + 2*2; n < 100 || n > most {
			t.Errorf("%d datagrams to a silent address, want at most %d", n, most)
		}
	})
}

// The real client of the last step takes nothing either.
func TestClientAsksForNothing(t *testing.T) {
	for _, r := range nothing().Resources {
		if r.Tokens != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// The modes that protect little are noted where others could listen, and nowhere
// else.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		auth apikey.Auth
		addr string
		want []string
	}{
		{apikey.AuthNone, "10.0.0.1:29292", []string{"mode-none"}},
		{apikey.AuthCookie, "10.0.0.1:29292", []string{"mode-cookie"}},
		{apikey.AuthAES, "10.0.0.1:29292", nil},
		{apikey.AuthNone, "127.0.0.1:29292", nil},
		{apikey.AuthCookie, "127.0.0.1:29292", nil},
	} {
		t.Run(c.auth.String()+" "+c.addr, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.key = newKey(t, c.auth, 7)
				r := w.run(w.config(w.serve(c.addr)))
				w.want(r, Well, c.want...)
				if r.Given.Mode != c.auth.String() || r.Given.KeyID != 7 {
					t.Errorf("%+v", r.Given)
				}
			})
		})
	}
}

// With three silent servers and a zone, all is over in time, and is told.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var told lines
		a, b, c := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292"), w.serve("10.0.0.3:29292")
		w.key = newKey(t, apikey.AuthAES, 7)
		cfg := w.lookedUp(named(a, b, c))
		cfg.Progress = &told
		r := w.run(cfg)
		w.want(r, NoDecision, "silent")
		if took := time.Duration(r.Took); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(told) == 0 || told[0] != "weir: asking 3 addresses of 3 servers…\n" {
			t.Errorf("told %q", told)
		}
	})
}

// What is over soon is not told about.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var told lines
		cfg := w.config(w.serve("10.0.0.1:29292"))
		cfg.Progress = &told
		w.want(w.run(cfg), Well)
		if pass(time.Minute); len(told) > 0 {
			t.Errorf("told %q", told)
		}
	})
}

type lines []string

func (l *lines) Write(p []byte) (int, error) {
	*l = append(*l, string(p))
	return len(p), nil
}
