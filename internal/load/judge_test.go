package load

import (
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/wire"
)

// Each kind of a wrong answer is told by its name, and is no answer: whoever waits goes on waiting.
func TestWrongAnswers(t *testing.T) {
	work := Work{Buckets: 10, Resources: 2, Guards: 1}
	asked := func(e *responder.Exchange) *wire.Request {
		req := &wire.Request{Layout: wire.Layout2, DedupTTL: 1}
		for i := range e.Request.Guards() {
			req.Guards = append(req.Guards, e.Request.Guard(i))
		}
		for i := range e.Request.Resources() {
			req.Resources = append(req.Resources, e.Request.Resource(i))
		}
		return req
	}
	for name, c := range map[string]struct {
		kind  string
		wrong func(e *responder.Exchange, ours, foreign *answerer)
	}{
		"as it should be": {"", func(e *responder.Exchange, ours, _ *answerer) { e.Raw = ours.grant(&e.Header, asked(e)) }},
		"no datagram of the protocol": {"unreadable", func(e *responder.Exchange, _, _ *answerer) {
			e.Raw = []byte("hello")
		}},
		"another key": {"unreadable", func(e *responder.Exchange, _, foreign *answerer) {
			e.Raw = foreign.grant(&e.Header, asked(e))
		}},
		"a request": {"unreadable", func(e *responder.Exchange, ours, _ *answerer) {
			e.Raw, _ = ours.credential.AppendRequest(nil, ours.sealer, &e.Header, asked(e))
		}},
		"another flow's identity": {"stranger", func(e *responder.Exchange, _, _ *answerer) { e.Header.UniqueID[0] ^= 1 }},
		"no slot":                 {"stranger", func(e *responder.Exchange, _, _ *answerer) { e.Header.UniqueID[11] = 255 }},
		"a serial to come":        {"stranger", func(e *responder.Exchange, _, _ *answerer) { e.Header.UniqueID[15] = 255 }},
		"a serial never used": {"stranger", func(e *responder.Exchange, _, _ *answerer) {
			copy(e.Header.UniqueID[12:], []byte{0, 0, 0, 0})
		}},
		"another server": {"server", func(e *responder.Exchange, _, _ *answerer) { e.Header.KeyID++ }},
		"over the limit": {"rate", func(e *responder.Exchange, _, _ *answerer) { e.Answer.Rates[1] = 1_000_000_001 }},
		"a resource less": {"shape", func(e *responder.Exchange, a, _ *answerer) {
			r := asked(e)
			r.Resources = r.Resources[:1]
			e.Raw = a.grant(&e.Header, r)
		}},
		"a guard less": {"shape", func(e *responder.Exchange, a, _ *answerer) {
			r := asked(e)
			r.Guards = nil
			e.Raw = a.grant(&e.Header, r)
		}},
		"nothing": {"shape", func(e *responder.Exchange, a, _ *answerer) {
			e.Raw = a.grant(&e.Header, &wire.Request{Layout: wire.Layout2, DedupTTL: 1})
		}},
		"another bucket": {"shape", func(e *responder.Exchange, a, _ *answerer) {
			r := asked(e)
			r.Resources[1].Bucket[3] ^= 1
			e.Raw = a.grant(&e.Header, r)
		}},
		"another window": {"shape", func(e *responder.Exchange, a, _ *answerer) {
			r := asked(e)
			r.Resources[1].Window++
			e.Raw = a.grant(&e.Header, r)
		}},
		"another tracker": {"shape", func(e *responder.Exchange, a, _ *answerer) {
			r := asked(e)
			r.Guards[0].Tracker[3] ^= 1
			e.Raw = a.grant(&e.Header, r)
		}},
		"in another order": {"shape", func(e *responder.Exchange, a, _ *answerer) {
			r := asked(e)
			r.Resources[0], r.Resources[1] = r.Resources[1], r.Resources[0]
			e.Raw = a.grant(&e.Header, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.serve("10.0.0.1")
				ours, foreign := newAnswerer(t, w.key), newAnswerer(t, newKey(t, apikey.AuthAES))
				n := 0
				s.Do(func(e *responder.Exchange) {
					if n++; n%10 == 5 {
						c.wrong(e, ours, foreign)
					}
				})
				cfg := w.config(s)
				cfg.Work, cfg.Timeout = work, 40*time.Millisecond
				r := w.run(cfg)
				wrong := uint64(n / 10)
				if c.kind == "" {
					wrong = 0
				}
				if r.Wrong < wrong || r.Wrong > wrong+1 || c.kind != "" && r.Wrongs[c.kind] != r.Wrong {
					t.Errorf("of %d requests: %+v", n, r)
				}
				lost := r.Wrong
				if c.kind == "rate" { // which is an answer
					lost = 0
				}
				if r.Lost != lost || r.Granted != uint64(n)-lost || n < 1000 {
					t.Errorf("of %d requests: %+v", n, r)
				}
			})
		})
	}
}

// A server that grants more than its limit in any window is found out, whatever it says of its rate.
func TestBeyondLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		s.Do(func(e *responder.Exchange) { e.Answer.Rates[0] = 1 })
		cfg := w.config(s)
		cfg.Work = Work{Limit: 3000, Tokens: 2, Window: 10_000}
		r := w.run(cfg)
		if r.Wrongs["beyond-limit"] != 2*5000-3000 || r.Wrong != r.Wrongs["beyond-limit"] {
			t.Errorf("%+v", r)
		}
		cfg.Work.Limit = 10_000
		if r := w.run(cfg); r.Wrong != 0 {
			t.Errorf("%+v", r)
		}
		// Two addresses of one server do not make two of it.
		cfg.Work.Limit = 9_000
		cfg.Targets, cfg.Servers = append(cfg.Targets, cfg.Targets[0]), append(cfg.Servers, cfg.Servers[0])
		if r := w.run(cfg); r.Wrong != 1000 {
			t.Errorf("%+v", r)
		}
		cfg.Servers = nil // two, for all that is known
		if r := w.run(cfg); r.Wrong != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A guard that trips denies.
func TestGuardDenies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		s.Do(func(e *responder.Exchange) { e.Answer.Latencies[1] = 1<<32 - 1 })
		cfg := w.config(s)
		cfg.Work.Guards = 2
		if r := w.run(cfg); r.Denied != 5000 || r.Wrong != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A server that is restarted in the middle answers under another ID, which a client would not take.
func TestRestartedServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		begin := time.Now()
		s.Do(func(e *responder.Exchange) {
			switch at := time.Since(begin); {
			case at > 600*time.Millisecond:
				e.Header.KeyID += 5
			case at > 500*time.Millisecond:
				e.Silent = true
			}
		})
		cfg := w.config(s)
		cfg.Timeout = 50 * time.Millisecond
		if r := w.run(cfg); r.Granted < 2490 || r.Granted > 2510 || r.Wrongs["server"] < 70 || r.Wrongs["server"] > 90 || r.Lost != r.Sent-r.Granted {
			t.Errorf("%+v", r)
		}
		cfg.Servers = nil // whoever answers is right
		if r := w.run(cfg); r.Wrong != 0 || r.Lost != 0 {
			t.Errorf("%+v", r)
		}
	})
}
