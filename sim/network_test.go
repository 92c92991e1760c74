package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// near tells whether n of total is within four standard deviations of a share.
func near(n, total int, share float64) bool {
	return math.Abs(float64(n)-share*float64(total)) <= 4*math.Sqrt(float64(total)*share*(1-share))+1
}

// delays returns how long requests took to each server, and answers back, by server.
func (t tape) delays(s *Scenario) (up, down [][]time.Duration) {
	up, down = make([][]time.Duration, len(s.Servers)), make([][]time.Duration, len(s.Servers))
	type leg struct {
		request uint64
		server  int
		kind    core.SendKind
	}
	sent, served := map[leg]time.Duration{}, map[leg]time.Duration{}
	for i := range t {
		r := &t[i]
		l := leg{r.Request, r.Server, r.Send}
		switch r.Kind {
		case RecordSend:
			sent[l] = r.At
		case RecordArrive:
			up[r.Server] = append(up[r.Server], r.At-sent[l])
		case RecordServe:
			served[l] = r.At
		case RecordResponse:
			down[r.Server] = append(down[r.Server], r.At-served[l])
		}
	}
	return up, down
}

// TestDelays: each direction of each link has its own.
func TestDelays(t *testing.T) {
	s := small(func(s *Scenario) {
		dense(s, 4000)
		s.Links = []Link{
			{From: "*", To: "*", Delay: Constant(ms(1))},
			{From: "web", To: "B", Delay: Uniform(ms(2), ms(4))},
			{From: "B", To: "web", Delay: Exponential(ms(2))},
		}
	})
	up, down := play(t, s, 1).delays(s)
	for _, all := range [][]time.Duration{up[0], down[0]} {
		if slices.Min(all) != ms(1) || slices.Max(all) != ms(1) {
			t.Errorf("from %v to %v, not 1ms", slices.Min(all), slices.Max(all))
		}
	}
	if low, high, mean := slices.Min(up[1]), slices.Max(up[1]), mean(up[1]); low < ms(2) || low > us(2010) || high > ms(4) || high < us(3990) || math.Abs(mean-3e6) > 4e4 {
		t.Errorf("from %v to %v, mean %v, not uniform from 2ms to 4ms", low, high, mean)
	}
	slices.Sort(down[1])
	for q, want := range map[float64]float64{0.5: 1.386e6, 0.9: 4.605e6, 0.99: 9.21e6} {
		if got := float64(down[1][int(q*float64(len(down[1])))]); math.Abs(got/want-1) > 0.1 {
			t.Errorf("quantile %v is %v, not %v", q, got, want)
		}
	}
}

func mean(ds []time.Duration) float64 {
	sum := time.Duration(0)
	for _, d := range ds {
		sum += d
	}
	return float64(sum) / float64(len(ds))
}

// TestLoss counts what is lost by chance, on the one link and direction that loses.
func TestLoss(t *testing.T) {
	s := small(func(s *Scenario) {
		dense(s, 5000)
		s.Links = append(s.Links, Link{From: "web", To: "A", Delay: Constant(ms(1)), Loss: 100_000})
	})
	got := play(t, s, 1)
	sent := got.count(RecordSend, func(r *Record) bool { return r.Server == 0 })
	lost := got.count(RecordLost, func(r *Record) bool { return r.Server == 0 && r.Cause == LostLink && !r.Answer })
	if !near(lost, sent, 0.1) {
		t.Errorf("%d of %d were lost, not a tenth", lost, sent)
	}
	if n := got.count(RecordLost, func(*Record) bool { return true }); n != lost {
		t.Errorf("%d were lost elsewhere", n-lost)
	}
}

// TestBurst: the share that is lost is that of the bad state, and what is lost comes in runs whose
// mean length is what Leave says, unless the bad state lets some through.
func TestBurst(t *testing.T) {
	for _, c := range []struct {
		loss               PerMillion
		share, length, off float64
	}{
		// The bad state has a share of Enter / (Enter + Leave), its stays a mean of 1 / Leave.
		{million, 0.0476, 5, 0.7},
		// Of a stay whose end comes with each datagram by chance q, runs of losses have a mean of
		// 1 / (1 - (1 - q) / 2).
		{million / 2, 0.0238, 1.67, 0.2},
	} {
		s := small(func(s *Scenario) {
			dense(s, 20_000)
			s.Servers = s.Servers[:1]
			s.Policy = oneRound()
			s.Links[0].Burst = Burst{Enter: 10_000, Leave: 200_000, Loss: c.loss}
		})
		fate := map[uint64]bool{}
		for _, r := range play(t, s, 1).of(RecordLost) {
			if r.Cause != LostBurst {
				t.Fatalf("lost by %v", r.Cause)
			}
			if !r.Answer {
				fate[r.Request] = true
			}
		}
		runs := 0
		for n := range fate {
			if !fate[n-1] {
				runs++
			}
		}
		if share := float64(len(fate)) / 20_000; math.Abs(share/c.share-1) > 0.17 {
			t.Errorf("%v were lost, not %v", share, c.share)
		}
		if length := float64(len(fate)) / float64(runs); math.Abs(length-c.length) > c.off {
			t.Errorf("bursts have a mean of %v, not %v", length, c.length)
		}
	}
}

// TestDuplicate: twice means two arrivals, each after a delay of its own, of which the server
// answers the second as a repeat.
func TestDuplicate(t *testing.T) {
	s := small(func(s *Scenario) {
		dense(s, 5000)
		s.Links[0] = Link{From: "web", To: "*", Delay: Uniform(0, ms(2)), Duplicate: 50_000}
	})
	got := play(t, s, 1)
	sent := len(got.of(RecordSend))
	twice := got.count(RecordArrive, func(r *Record) bool { return r.Copy == 1 })
	if !near(twice, sent, 0.05) {
		t.Errorf("%d of %d arrived twice, not 5 %%", twice, sent)
	}
	repeats := got.count(RecordServe, func(r *Record) bool { return r.Verdict.String() == "repeat_granted" })
	deliveries := got.count(RecordSend, func(r *Record) bool { return r.Send == core.SendCompletion })
	if repeats != twice+deliveries {
		t.Errorf("%d repeats of %d copies and %d deliveries", repeats, twice, deliveries)
	}
	at := map[[2]uint64]time.Duration{}
	overtakes, same := 0, 0
	for _, r := range got.of(RecordArrive) {
		k := [2]uint64{r.Request, uint64(r.Server)<<8 | uint64(r.Send)}
		if first, ok := at[k]; ok {
			if r.Copy == 0 {
				overtakes++
			}
			if first == r.At {
				same++
			}
		}
		at[k] = r.At
	}
	if !near(overtakes, twice, 0.5) || same > twice/20 {
		t.Errorf("of %d copies %d came first, %d at once", twice, overtakes, same)
	}
}

// TestReorder: late ones are overtaken by those behind them, on a FIFO link too, where nothing
// else is.
func TestReorder(t *testing.T) {
	for _, c := range []struct {
		fifo    bool
		reorder PerMillion
	}{{false, 0}, {true, 0}, {true, 100_000}} {
		s := small(func(s *Scenario) {
			dense(s, 4000)
			s.Servers = s.Servers[:1]
			s.Links[0] = Link{From: "web", To: "*", Delay: Uniform(0, us(1500)), FIFO: c.fifo, Reorder: c.reorder, Late: Constant(ms(10))}
		})
		got := play(t, s, 1)
		last, overtaken := uint64(0), 0
		for _, r := range got.of(RecordArrive) {
			if r.Send != core.SendFirst {
				continue
			}
			if r.Request < last {
				overtaken++
			}
			last = max(last, r.Request)
		}
		switch {
		case c.reorder > 0 && !near(overtaken, 4000, 0.1):
			t.Errorf("%d of 4000 were overtaken, not a tenth", overtaken)
		case c.reorder == 0 && c.fifo && overtaken > 0:
			t.Errorf("%d were overtaken on a FIFO link", overtaken)
		case !c.fifo && !near(overtaken, 4000, 0.0556): // (0.5 ms / 1.5 ms)^2 / 2
			t.Errorf("%d of 4000 were overtaken, not one in 18", overtaken)
		}
	}
}
