package roundtrip

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
)

// Every address is measured by itself, exactly, and all that was asked is answered.
func TestDelays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		near := w.serve("10.0.0.1:29292", "[fd00::1]:29292")
		far := w.serve("10.0.0.2:29292")
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			switch {
			case p.To == far.Addrs[0]:
				return udp.Fate{Delay: 20 * time.Millisecond}
			case up(p) && p.To.Addr().Is6():
				return udp.Fate{Delay: 3 * time.Millisecond}
			case up(p):
				return udp.Fate{Delay: time.Millisecond}
			}
			return udp.Fate{Delay: 1234567 * time.Nanosecond}
		})
		r := w.run(w.config(near, far))
		if len(r.Paths) != 3 || r.Took != 10*time.Second || r.Interrupted {
			t.Fatalf("%+v", r)
		}
		for i, want := range []time.Duration{2234567, 4234567, 21234567} {
			p := r.Paths[i]
			if p.Asked != 500 || p.Answered != 500 || p.Late+p.Repeats+p.Unsent+p.Invalid != 0 || p.Lag != 0 {
				t.Errorf("%+v", p)
			}
			if p.Least != want || p.Most != want || p.Quantile(50) != want || p.Quantile(99.9) != want {
				t.Errorf("%v: %v, %v, %v, want %v", p.Addr, p.Least, p.Quantile(50), p.Most, want)
			}
		}
		for i, tag := range []string{near.ID.String() + "@10.0.0.1:29292", near.ID.String() + "@[fd00::1]:29292", far.ID.String()} {
			if r.Paths[i].Tag != tag {
				t.Errorf("tag %q, want %q", r.Paths[i].Tag, tag)
			}
		}
	})
}

// Questions come at an even rate with a jitter, each in its part of the time, and the
// paths' one after the other; and whoever does not answer is asked no less.
func TestSchedule(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		addrs := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:29292"), netip.MustParseAddrPort("10.0.0.2:29292")}
		w.net.Host(addrs[0].Addr(), addrs[1].Addr())
		sent := map[netip.AddrPort][]time.Duration{}
		begin := time.Now()
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			sent[p.To] = append(sent[p.To], time.Since(begin))
			return udp.Fate{Drop: true}
		})
		cfg := w.config(discovery.Server{ID: 1, Addrs: addrs[:1]}, discovery.Server{ID: 2, Addrs: addrs[1:]})
		cfg.Rate = 100
		r := w.run(cfg)
		const part = 10 * time.Millisecond
		for i, addr := range addrs {
			if len(sent[addr]) != 1100 {
				t.Fatalf("%d questions", len(sent[addr]))
			}
			var late []time.Duration
			for k, at := range sent[addr] {
				off := at - time.Duration(k)*part - part/4*time.Duration(i)
				if off < 0 || off >= part/2 {
					t.Fatalf("question %d left %v after its part began", k, off)
				}
				late = append(late, off)
			}
			if slices.Max(late)-slices.Min(late) < part/3 {
				t.Errorf("the jitter is from %v to %v", slices.Min(late), slices.Max(late))
			}
			if p := r.Paths[i]; p.Asked != 1000 || p.Lost() != 1000 || p.Loss() != 1 || p.Quantile(50) != 0 {
				t.Errorf("%+v", p)
			}
		}
		// The last question is waited for, and no longer.
		if took := time.Since(begin); took < 11*time.Second+990*time.Millisecond || took > 12*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A server that pauses for half a second is asked all the while.
func TestPauseIsSeen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1:29292")
		begin := time.Now()
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			if at := time.Since(begin); up(p) && at >= 5*time.Second && at < 5500*time.Millisecond {
				return udp.Fate{Delay: 5500*time.Millisecond - at}
			}
			return udp.Fate{Delay: time.Millisecond}
		})
		p := w.run(w.config(s)).Paths[0]
		if p.Answered != 500 || p.Most < 490*time.Millisecond || p.Most > 502*time.Millisecond {
			t.Errorf("%+v", p)
		}
		// 25 of 500 met it, one of them each 20 ms.
		if q := p.Quantile(95.9); q < 60*time.Millisecond || q > 110*time.Millisecond {
			t.Errorf("p95.9 is %v", q)
		}
		if q := p.Quantile(94.9); q > 3*time.Millisecond {
			t.Errorf("p94.9 is %v", q)
		}
	})
}

// What is lost either way is lost, what comes twice counts once, and what comes late is
// lost and known.
func TestLossRepeatsLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1:29292")
		var asked, answered int
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			f := udp.Fate{Delay: time.Millisecond}
			if up(p) {
				asked++
				f.Drop = asked%10 == 0
				return f
			}
			answered++
			switch answered % 9 {
			case 0:
				f.Drop = true
			case 1:
				f.Copies = 1
			case 2:
				f.Delay = 300 * time.Millisecond
			case 3:
				f.Delay = 99 * time.Millisecond // with the way there, just in time
			}
			return f
		})
		cfg := w.config(s)
		cfg.Timeout = 100 * time.Millisecond
		p := w.run(cfg).Paths[0]
		// Of each ten: one lost there, one back, one late. The last of these would come after the end.
		if p.Asked != 500 || p.Answered != 350 || p.Lost() != 150 || p.Late != 49 || p.Repeats != 50 || p.Invalid != 0 {
			t.Errorf("%+v", p)
		}
		if p.Least != 2*time.Millisecond || p.Most != 100*time.Millisecond {
			t.Errorf("%v to %v", p.Least, p.Most)
		}
	})
}

// A dead server, and one with another key, are silent, beside one that answers.
func TestSilent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.net.Host(netip.MustParseAddr("10.0.0.9"))
		dead := discovery.Server{ID: 9, Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:29292")}}
		other := w.serve("10.0.0.2:29292")
		w.key = newKey(t)
		good := w.serve("10.0.0.1:29292")
		r := w.run(w.config(dead, good, other))
		for i, want := range []int{0, 500, 0} {
			if p := r.Paths[i]; p.Asked != 500 || p.Answered != want || p.Invalid != 0 {
				t.Errorf("%+v", p)
			}
		}
		if r.Answered() != 500 {
			t.Errorf("%d answers", r.Answered())
		}
		var text strings.Builder
		if err := WriteTable(&text, r); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), "no answer; weir doctor"); got != 2 {
			t.Errorf("%s", text.String())
		}
	})
}

// A server that was restarted answers under another ID.
func TestStranger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1:29292")
		id := s.ID
		s.ID--
		p := w.run(w.config(s)).Paths[0]
		if p.Answered != 0 || p.Invalid != 550 || p.Stranger != id || p.Forged != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// An interruption leaves what there is, without the questions that are still open.
func TestInterrupted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1:29292")
		w.net.SetLink(func(p udp.Packet) udp.Fate { return udp.Fate{Delay: 100 * time.Millisecond} })
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		r, err := Run(ctx, w.config(s))
		if err != nil {
			t.Fatal(err)
		}
		p := r.Paths[0]
		if !r.Interrupted || r.Took != 3*time.Second || p.Lost() != 0 || p.Answered < 139 || p.Answered > 141 {
			t.Errorf("%+v %+v", r, p)
		}
	})
}

// What this machine cannot send is told apart from what is lost.
func TestUnsent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1:29292")
		w.net.SetLink(func(p udp.Packet) udp.Fate {
			if up(p) {
				return udp.Fate{Err: errors.New("not permitted")}
			}
			return udp.Fate{}
		})
		p := w.run(w.config(s)).Paths[0]
		if p.Asked != 0 || p.Unsent != 500 || !strings.HasSuffix(p.Error, "not permitted") || p.Loss() != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// Progress goes on to the end, in order.
func TestProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1:29292")
		cfg := w.config(s)
		var told []time.Duration
		cfg.Progress = func(passed, all time.Duration) {
			if all != 11*time.Second || passed > all {
				t.Errorf("%v of %v", passed, all)
			}
			told = append(told, passed)
		}
		w.run(cfg)
		if len(told) < 100 || !slices.IsSorted(told) || told[len(told)-1] < 10*time.Second {
			t.Errorf("told %v", told)
		}
	})
}

// Without randomness nothing is asked, and it ends.
func TestNoEntropy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1:29292")
		cfg := w.config(s)
		cfg.Entropy = strings.NewReader("0123456789abcdef") // enough for the sealer
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "drawing an identity") {
			t.Errorf("%v", err)
		}
	})
}

func TestConfig(t *testing.T) {
	good := Config{Key: newKey(t), Servers: []discovery.Server{{ID: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")}}}}
	for want, change := range map[string]func(*Config){
		"no key":                 func(c *Config) { *c = Config{Servers: c.Servers} },
		"no servers":             func(c *Config) { c.Servers = nil },
		"how long to measure":    func(c *Config) { c.For = MaxFor + 1 },
		"a warm-up of -1ns":      func(c *Config) { c.WarmUp = -1 },
		"1001 questions":         func(c *Config) { c.Rate = MaxRate + 1 },
		"-1 questions":           func(c *Config) { c.Rate = -1 },
		"a timeout of 999.999µs": func(c *Config) { c.Timeout = time.Millisecond - 1 },
		"a timeout of 1m0.":      func(c *Config) { c.Timeout = MaxTimeout + 1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
