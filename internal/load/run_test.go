package load

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// above returns how many latencies of a result are longer than a time.
func above(r *Result, d time.Duration) (n int) {
	for _, bar := range r.Latencies.Distribution() {
		if bar.From > int64(d) {
			n += int(bar.Count)
		}
	}
	return n
}

// As many are in flight as were asked for, all the time and never more, and each counts once.
func TestClosedLoop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		var inFlight, most int
		w.link(func(p udp.Packet, _ *udp.Fate) {
			if up(p) {
				inFlight++
				most = max(most, inFlight)
				return
			}
			inFlight--
		})
		cfg := w.config(s)
		cfg.WarmUp = 100 * time.Millisecond
		begin := time.Now()
		r := w.run(cfg)
		if r.Sent != 5000 || r.Granted != 5000 || r.PerSecond != 5000 || r.Wrong+r.Late+r.Moves+r.Unsent != 0 || r.Interrupted || r.Loop != "closed" {
			t.Errorf("%+v", r)
		}
		if most != 10 {
			t.Errorf("%d were in flight", most)
		}
		if want := 2000.0; r.Latency.P50 < want || r.Latency.P50 > want*1.001 || r.Latency.Max > want*1.001 || r.Latency.Mean > want*1.001 {
			t.Errorf("%+v", r.Latency)
		}
		log := s.Log()
		if log.Identities() != 5500 || len(log.Requests) != 5500 || len(log.Peers()) != 2 {
			t.Errorf("%d requests, %d identities, %d peers", len(log.Requests), log.Identities(), len(log.Peers()))
		}
		if took := time.Since(begin); took > 1200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// Requests in flight that cannot be shared out evenly are all in flight.
func TestUnevenFlows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := w.config(w.serve("10.0.0.1"))
		cfg.Flows, cfg.InFlight, cfg.For = 3, 8, 100*time.Millisecond
		if r := w.run(cfg); r.Sent != 8*50 {
			t.Errorf("%+v", r)
		}
	})
}

// At a rate so low that nothing is due before time itself is over, nothing is sent.
func TestRateOfNothing(t *testing.T) {
	for _, rate := range []float64{1e-10, 1e-300, math.SmallestNonzeroFloat64} {
		inWorld(t, func(t *testing.T, w *world) {
			s := w.serve("10.0.0.1")
			cfg := w.config(s)
			cfg.Rate = rate
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w.link(func(udp.Packet, *udp.Fate) { cancel() })
			begin := time.Now()
			r, err := Run(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); r.Sent != 0 || r.Skipped != 0 || r.Interrupted || took > 2*time.Second {
				t.Errorf("%v a second: %d were sent and %d skipped, in %v", rate, r.Sent, r.Skipped, took)
			}
		})
	}
}

// An open loop sends at its rate, the same in every run, with intervals that are exponential.
func TestOpenLoop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		var at []time.Duration
		begin := time.Now()
		w.link(func(p udp.Packet, _ *udp.Fate) {
			if up(p) {
				at = append(at, time.Since(begin))
			}
		})
		cfg := w.config(s)
		cfg.InFlight, cfg.Rate, cfg.For, cfg.WarmUp = 0, 1000, 10*time.Second, time.Second
		r := w.run(cfg)
		if r.Sent < 9700 || r.Sent > 10300 || r.Granted != r.Sent || r.Skipped+r.Late != 0 || r.Loop != "open" || r.InFlight != 0 {
			t.Errorf("%+v", r)
		}
		if r.Latency.P50 < 2000 || r.Latency.Max > 2003 || r.Lag.N != int64(r.Sent) || r.Lag.Max > 1 {
			t.Errorf("%+v, late %+v", r.Latency, r.Lag)
		}
		short, long := 0, 0
		for i, t := range at[1:] {
			switch gap := t - at[i]; {
			case gap < 105360*time.Nanosecond: // a tenth are, of exponential ones of 1 ms
				short++
			case gap > 2302585*time.Nanosecond: // and another
				long++
			}
		}
		if n := len(at) / 10; short < n*9/10 || short > n*11/10 || long < n*9/10 || long > n*11/10 {
			t.Errorf("of %d intervals %d are short and %d long", len(at), short, long)
		}
		if again := w.run(cfg); again.Sent != r.Sent {
			t.Errorf("%d requests, and %d with the same seed", r.Sent, again.Sent)
		}
	})
}

// A server's stall is seen by every request that was due meanwhile in an open loop, and in a closed
// loop by those that were in flight.
func TestStall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		var begin time.Time
		met := 0
		w.link(func(p udp.Packet, f *udp.Fate) {
			const from, to = 500 * time.Millisecond, 700 * time.Millisecond
			if at := time.Since(begin); up(p) && at >= from && at < to {
				met++
				f.Delay += to - at
			}
		})
		cfg := w.config(s)
		begin = time.Now()
		r := w.run(cfg)
		if n := above(r, 3*time.Millisecond); n != 10 || met != 10 {
			t.Errorf("%d latencies of a closed loop, %d requests", n, met)
		}
		cfg.InFlight, cfg.Rate = 0, 1000
		begin, met = time.Now(), 0
		r = w.run(cfg)
		if n := above(r, 2010*time.Microsecond); n < met*95/100 || met < 150 || met > 250 || r.Lost != 0 {
			t.Errorf("%d latencies of an open loop, %d requests", n, met)
		}
		if half := above(r, 102*time.Millisecond); half < met*4/10 || half > met*6/10 || r.Latency.Max < 190_000 {
			t.Errorf("%d of %d waited for half of it, the longest %v us", half, met, r.Latency.Max)
		}
	})
}

// When the sender itself is held up, latencies count from when requests were due; FromSend leaves that out.
func TestSenderHeldUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		for _, fromSend := range []bool{false, true} {
			begin, held := time.Now(), false
			cfg := w.config(s)
			cfg.InFlight, cfg.Rate, cfg.FromSend = 0, 1000, fromSend
			cfg.Stack = slowStack{Stack: w.host, takes: func() time.Duration {
				if held || time.Since(begin) < 500*time.Millisecond {
					return 0
				}
				held = true
				return 200 * time.Millisecond
			}}
			r := w.run(cfg)
			if r.Lag.P90 < 20_000 || r.Lag.Max < 190_000 || r.Lost != 0 || r.Limit != limitClient && !fromSend {
				t.Errorf("%+v, late %+v", r, r.Lag)
			}
			n := above(r, 3*time.Millisecond)
			if !fromSend && (n < 150 || n > 250) || fromSend && n > 1 { // the one that was held up had been read the clock for
				t.Errorf("from send %v: %d latencies", fromSend, n)
			}
		}
	})
}

// What was due before the end and is sent after it has answers, too.
func TestSenderHeldUpOverTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := w.config(w.serve("10.0.0.1"))
		cfg.InFlight, cfg.Rate = 0, 1000
		begin := time.Now()
		cfg.Stack = slowStack{Stack: w.host, takes: func() time.Duration {
			if at := time.Since(begin); at > 900*time.Millisecond && at < time.Second {
				return 300 * time.Millisecond
			}
			return 0
		}}
		if r := w.run(cfg); r.Sent < 900 || r.Lost+r.Unsent != 0 || r.Lag.Max < 200_000 {
			t.Errorf("%+v, late %+v", r, r.Lag)
		}
	})
}

// How long answers lay in the client's sockets is known, and no part of what FromSend counts.
func TestReaderHeldUp(t *testing.T) {
	for _, fromSend := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			cfg := w.config(w.serve("10.0.0.1"))
			cfg.FromSend, cfg.Flows, cfg.InFlight = fromSend, 1, 1
			cfg.Stack = slowStack{Stack: w.host, reads: 3 * time.Millisecond}
			r := w.run(cfg)
			want := 5000.0
			if fromSend {
				want = 2000
			}
			if r.Latency.P50 < want || r.Latency.P50 > want*1.001 || r.ClientShare < 0.59 || r.ClientShare > 0.61 || r.Limit != limitClient {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A rate beyond what can be sent is told, and the run ends when it should.
func TestRateBeyondTheClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := w.config(w.serve("10.0.0.1"))
		cfg.InFlight, cfg.Rate, cfg.Timeout = 0, 100_000, 100*time.Millisecond
		cfg.Stack = slowStack{Stack: w.host, takes: func() time.Duration { return 2 * time.Millisecond }}
		begin := time.Now()
		r := w.run(cfg)
		if r.Skipped < 10_000 || r.Limit != limitClient || r.Lag.P99 < 90_000 {
			t.Errorf("%+v", r)
		}
		if all := r.Sent + r.Skipped; all < 98_000 || all > 102_000 {
			t.Errorf("%d were due", all)
		}
		if took := time.Since(begin); took > 1300*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// What is lost either way is lost, what comes late is lost and known, and what comes twice counts once.
func TestLossLateRepeats(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		inWorld(t, func(t *testing.T, w *world) {
			s := w.serve("10.0.0.1")
			n := 0
			s.Do(func(e *responder.Exchange) {
				switch n++; n % 10 {
				case 1:
					e.Silent = true
				case 2:
					e.Copies = 2
				case 3:
					e.Delay = 103 * time.Millisecond // before it is looked for again
				case 4:
					e.Delay = 98 * time.Millisecond // just in time
				}
			})
			cfg := w.config(s)
			cfg.Timeout, cfg.Rate = 100*time.Millisecond, rate
			if rate > 0 {
				cfg.InFlight = 0
			}
			r := w.run(cfg)
			fifth := n / 5
			if r.Late < uint64(n*3/10-6) || r.Late > uint64(n*3/10+6) || r.Wrong != 0 || r.Lost < uint64(fifth-5) || r.Lost > uint64(fifth+5) {
				t.Errorf("of %d: %+v", n, r)
			}
			if in := above(r, 99*time.Millisecond) - int(r.Lost); in < n/10-5 || in > n/10+5 || r.Latency.Max > 100_100 {
				t.Errorf("%d came just in time, the longest after %v us", in, r.Latency.Max)
			}
			if r.Limit != limitServer {
				t.Errorf("%q", r.Verdict)
			}
		})
	}
}

// A denied request is no loss, and consumes nothing.
func TestDenied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		n := 0
		s.Do(func(e *responder.Exchange) {
			if n++; n%2 == 0 {
				e.Answer.Deficits[0] = 1
			}
		})
		if r := w.run(w.config(s)); r.Granted != 2500 || r.Denied != 2500 || r.Wrong != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Reports come in their share, for the trackers of the guards.
func TestReports(t *testing.T) {
	for _, layout := range []wire.Layout{wire.Layout1, wire.Layout2} {
		inWorld(t, func(t *testing.T, w *world) {
			s := w.serve("10.0.0.1")
			guards := map[[16]byte]bool{}
			s.Do(func(e *responder.Exchange) {
				for i := range e.Request.Guards() {
					guards[e.Request.Guard(i).Tracker] = true
				}
			})
			cfg := w.config(s)
			cfg.Work = Work{Layout: layout, Guards: 2, Reports: 1.25, Resources: 2, Buckets: 10}
			r := w.run(cfg)
			log := s.Log()
			if r.Granted != 5000 || r.Reports != 6250 || len(log.Reports) != 2*6250 || len(guards) != 2 || r.Wrong != 0 {
				t.Errorf("%d observations, %d trackers, %+v", len(log.Reports), len(guards), r)
			}
			for _, o := range log.Reports {
				if !guards[o.Tracker] || o.Latency < 1 || o.Latency > 100 {
					t.Fatalf("%+v", o)
				}
			}
		})
	}
}

// Flows move when they are asked to, at most once a second, and nothing is lost on the way.
func TestSteering(t *testing.T) {
	for _, rate := range []float64{0, 2000} {
		inWorld(t, func(t *testing.T, w *world) {
			s := w.serve("10.0.0.1")
			s.Do(func(e *responder.Exchange) { e.Header.Steering, e.Delay = 0, 30*time.Millisecond })
			cfg := w.config(s)
			cfg.For = 3500 * time.Millisecond
			if cfg.Rate = rate; rate > 0 {
				cfg.InFlight = 0
			}
			r := w.run(cfg)
			if r.Moves != 2*4 || r.Lost+r.Late+r.Wrong+r.Unsent != 0 || r.Granted != r.Sent {
				t.Errorf("%+v", r)
			}
			peers := s.Log().Peers()
			if len(peers) != 2*5 {
				t.Errorf("%d ports", len(peers))
			}
			cfg.Steer = false
			if r := w.run(cfg); r.Moves != 0 || r.Granted != r.Sent {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A socket that was replaced does not keep a run from its end, and is left after a timeout.
func TestOldSocketEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		s.Do(func(e *responder.Exchange) { e.Header.Steering = 0 })
		cfg := w.config(s)
		cfg.Timeout = time.Minute
		begin := time.Now()
		w.run(cfg)
		if took := time.Since(begin); took > 1100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// Keys and servers have flows of their own, each pair.
func TestKeysAndServers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, six := w.serve("10.0.0.1"), w.serve("fd00::2")
		other := newKey(t, apikey.AuthCookie)
		cfg := w.config(one, six)
		cfg.Keys, cfg.Flows, cfg.InFlight = append(cfg.Keys, other), 0, 4
		cfg.Timeout = 2 * time.Second // no second request of the other key, which nobody knows
		r := w.run(cfg)
		for _, s := range []*responder.Responder{one, six} {
			if log := s.Log(); len(log.Requests) != 500 || log.Unopenable != 1 {
				t.Errorf("%d requests, %d of another key", len(log.Requests), log.Unopenable)
			}
		}
		if r.Flows != 4 || r.Lost != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// Who does not answer while others do is named, and only then; one that was asked nothing is not.
func TestSilent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		there := w.serve("10.0.0.1")
		cfg := w.config(there)
		if r := w.run(cfg); r.Silent != nil {
			t.Errorf("all answered, and silent are %q", r.Silent)
		}
		cfg.Targets, cfg.Servers = append(cfg.Targets, netip.MustParseAddrPort("10.0.0.2:29292")), append(cfg.Servers, 8)
		r := w.run(cfg)
		if want := []string{"10.0.0.2:29292 with key 7"}; !slices.Equal(r.Silent, want) {
			t.Errorf("silent are %q, not %q", r.Silent, want)
		}
		var text strings.Builder
		if err := WriteTable(&text, r); err != nil || !strings.Contains(text.String(), "No answer at all from 10.0.0.2:29292 with key 7") {
			t.Errorf("%v %s", err, text.String())
		}
		ask := cfg
		ask.Targets, ask.Servers = cfg.Targets[1:], cfg.Servers[1:]
		if r := w.run(ask); r.Silent != nil {
			t.Errorf("nobody answered, and silent are %q", r.Silent)
		}
		cfg.InFlight, cfg.Rate, cfg.Flows, cfg.For = 0, 0.1, 2, time.Millisecond // nothing is due, of nobody
		if r := w.run(cfg); r.Silent != nil {
			t.Errorf("nobody was asked, and silent are %q", r.Silent)
		}
	})
}

// Every mode, and layout 1, is spoken.
func TestModes(t *testing.T) {
	for _, auth := range []apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES} {
		for _, layout := range []wire.Layout{wire.Layout1, wire.Layout2} {
			inWorld(t, func(t *testing.T, w *world) {
				w.key = newKey(t, auth)
				cfg := w.config(w.serve("10.0.0.1"))
				cfg.Work = Work{Layout: layout, Guards: 1}
				if r := w.run(cfg); r.Granted != 5000 || r.Wrong != 0 {
					t.Errorf("%v, layout %d: %+v", auth, layout, r)
				}
			})
		}
	}
}

// An interruption leaves what there is; one before requests count leaves nothing, and says so.
func TestInterrupted(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		inWorld(t, func(t *testing.T, w *world) {
			s := w.serve("10.0.0.1")
			cfg := w.config(s)
			cfg.For, cfg.WarmUp, cfg.Rate = time.Hour, time.Second, rate
			if rate > 0 {
				cfg.InFlight = 0
			}
			for _, after := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second} {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), after)
				r, err := Run(ctx, cfg)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				took, counted := time.Since(begin), max(0, after-cfg.WarmUp).Seconds()
				if !r.Interrupted || r.Seconds != counted || took > after+200*time.Millisecond {
					t.Errorf("after %v: in %v, %+v", after, took, r)
				}
				// What is answered at the very instant of the end may count, and what is asked in its place not.
				if want := counted * r.PerSecond; float64(r.Granted)+float64(cfg.InFlight) < want || r.Granted != r.Sent || counted > 0 && r.Sent < 900 {
					t.Errorf("after %v: %+v", after, r)
				}
				if n := len(s.Log().Requests); after == 0 && n > 0 {
					t.Errorf("%d requests, when it was over before", n)
				}
				if early := strings.Contains(r.Verdict, "interrupted before"); early != (counted == 0) {
					t.Errorf("after %v: %q", after, r.Verdict)
				}
			}
		})
	}
}

// Progress goes on to the end, in order.
func TestProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := w.config(w.serve("10.0.0.1"))
		cfg.For, cfg.WarmUp = 10*time.Second, time.Second
		var told []time.Duration
		cfg.Progress = func(p Progress) {
			if p.All != 11*time.Second || p.Passed > p.All || p.Passed > 2*time.Second && (p.PerSecond < 4900 || p.PerSecond > 5100) {
				t.Errorf("%+v", p)
			}
			told = append(told, p.Passed)
		}
		w.run(cfg)
		if len(told) < 10 || !slices.IsSorted(told) {
			t.Errorf("told %v", told)
		}
	})
}

// What this machine cannot send is told apart from what is lost, with the reason.
func TestUnsent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.link(func(p udp.Packet, f *udp.Fate) {
			if up(p) {
				f.Err = errors.New("not permitted")
			}
		})
		r := w.run(w.config(w.serve("10.0.0.1")))
		if r.Unsent != 10 || r.Lost != 10 || !strings.HasSuffix(r.Error, "not permitted") || r.Limit != limitUnknown {
			t.Errorf("%+v", r)
		}
	})
}

// Nobody is there: all is lost, and asked again after the timeout in a closed loop.
func TestNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		s.Stop()
		cfg := w.config(s)
		cfg.Timeout = 90 * time.Millisecond
		if r := w.run(cfg); r.Lost != r.Sent || r.Sent < 90 || r.Sent > 120 || r.Limit != limitUnknown || r.Latency.P50 < 90_000 {
			t.Errorf("%+v", r)
		}
	})
}

// What cannot be asked ends the run at once.
func TestFailure(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		inWorld(t, func(t *testing.T, w *world) {
			cfg := w.config(w.serve("10.0.0.1"))
			cfg.For, cfg.Rate = time.Hour, rate
			cfg, err := cfg.fill()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			r := newRun(cfg)
			r.virtual, r.cancel = true, cancel
			n, err := newTenant(&cfg, cfg.Keys[0])
			if err != nil {
				t.Fatal(err)
			}
			r.tenants = append(r.tenants, n)
			if err := r.open(); err != nil {
				t.Fatal(err)
			}
			for _, f := range r.flows {
				f.work.req.DedupTTL = 0
			}
			begin := time.Now()
			if _, err := r.measure(ctx); err == nil || !strings.Contains(err.Error(), "load: wire: ") {
				t.Errorf("%v", err)
			}
			if took := time.Since(begin); took > 50*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Without randomness, or with too few sockets, nothing is asked.
func TestCannotOpen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		cfg := w.config(s)
		cfg.Entropy = strings.NewReader("0123456789abcdef")
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "load: ") {
			t.Errorf("%v", err)
		}
		cfg = w.config(s)
		cfg.Targets[0] = netip.MustParseAddrPort("[fd00::9]:29292")
		cfg.Stack = w.net.Host(netip.MustParseAddr("10.0.1.2"))
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "socket 1 of 2") {
			t.Errorf("%v", err)
		}
	})
}
