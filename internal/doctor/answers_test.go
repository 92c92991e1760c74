package doctor

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/wire"
)

// The server was restarted, and is still named by its old ID.
func TestRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		old := discovery.Server{ID: s.ID - 1<<30, Addrs: s.Addrs}
		r := w.run(w.config(old))
		w.want(r, NoDecision, "restarted")
		w.says(r, "restarted", s.ID.String()+" answers, which started 10m ago; named there is "+old.ID.String(), "--server="+s.String())
		if e := r.Servers[0].Endpoints[0]; e.Sent != DefaultProbes || e.Fan != nil {
			t.Errorf("it goes on asking: %+v", e)
		}
		w.want(w.run(w.config(s)), Well) // what it advises
	})
}

// It was restarted, and the clock is wrong: both are told.
func TestRestartedAndWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.serve("10.0.0.1:29292")
		w.off = time.Hour
		r := w.run(w.config(discovery.Server{ID: s.ID - 1<<30, Addrs: s.Addrs}))
		w.want(r, NoDecision, "clock", "restarted")
		w.says(r, "clock", "1h ahead of")
	})
}

// The addresses of two servers are mixed up.
func TestSwapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.serve("10.0.0.1:29292"), w.serve("10.0.0.2:29292")
		a.Addrs, b.Addrs = b.Addrs, a.Addrs
		r := w.run(w.config(a, b))
		// A client does not care which address an answer comes from.
		w.want(r, Degraded, "swapped", "swapped")
		w.says(r, "swapped", "mixed up", b.ID.String())
	})
}

// What answers is no r-server of this key.
func TestOtherAnswers(t *testing.T) {
	other, cookie := newKey(t, apikey.AuthAES, 7), newKey(t, apikey.AuthCookie, 7)
	for _, c := range []struct {
		code   string
		state  State
		script func(w *world, a *asked) []byte
	}{
		{"other-key", OtherKey, func(w *world, a *asked) []byte {
			a.key = other
			return a.answer(w)
		}},
		{"other-mode", OtherMode, func(w *world, a *asked) []byte {
			a.key = cookie
			return a.answer(w)
		}},
		{"reflected", Reflects, func(_ *world, a *asked) []byte { return a.datagram }},
		{"no-r-server", Garbage, func(*world, *asked) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }},
		{"no-r-server", Garbage, func(w *world, a *asked) []byte {
			b := a.answer(w)
			b[12]++ // another identity
			return b
		}},
	} {
		t.Run(c.code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := w.respond("10.0.0.1:29292", func(a *asked) []byte { return c.script(w, a) })
				r := w.run(w.config(s))
				w.want(r, NoDecision, c.code)
				if e := r.Servers[0].Endpoints[0]; e.State != c.state {
					t.Errorf("%s: %+v", e.State, e.Seen)
				}
			})
		})
	}
}

// An authentic answer to another question is no answer.
func TestMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.respond("10.0.0.1:29292", func(a *asked) []byte {
			return a.answerTo(w, viewOf(t, &wire.Request{Layout: wire.Layout2, DedupTTL: 1})) // about nothing
		})
		r := w.run(w.config(s))
		w.want(r, NoDecision, "no-r-server")
		if e := r.Servers[0].Endpoints[0]; e.Seen.Mismatched == 0 || e.Seen.Answers > 0 {
			t.Errorf("%+v", e.Seen)
		}
	})
}

// A reflector in none mode, whose datagrams are authentic to everyone.
func TestReflectorInNoneMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.key = newKey(t, apikey.AuthNone, 7)
		s := w.respond("10.0.0.1:29292", func(a *asked) []byte {
			b := slices.Clone(a.datagram)
			b[36] = 1 // not quite the same
			return b
		})
		w.want(w.run(w.config(s)), NoDecision, "reflected", "mode-none")
	})
}
