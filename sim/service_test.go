package sim

import (
	"testing"
	"time"

	"github.com/weirhq/weir/limiter"
)

// working is a scenario in which a request comes each millisecond for work of 2 ms in two places.
func working(change func(*Scenario)) *Scenario {
	return small(func(s *Scenario) {
		dense(s, 1000)
		s.Trackers = []Tracker{{Name: "t", TTL: 10 * time.Second, MaxSamples: 32, MinSamples: 1}}
		s.Services = []Service{{Name: "db", Parallel: 2, Time: Constant(ms(2)), Tracker: "t"}}
		s.Clients[0].Mix[0].Work = "db"
		if change != nil {
			change(s)
		}
	})
}

// TestServiceQueue: work waits for a place, and its wait is part of its latency.
func TestServiceQueue(t *testing.T) {
	s := working(func(s *Scenario) { s.Services[0].Time = Constant(us(2400)) })
	var last Record
	for i, r := range play(t, s, 1).of(RecordWorked) {
		// 1.2 ms of work come each ms: the n-th pair waits for 0.4 ms more than the one before.
		if want := us(2400 + 400*(i/2)); r.Elapsed != want {
			t.Fatalf("piece %d took %v, not %v", i, r.Elapsed, want)
		}
		last = r
	}
	if last.Request != 1000 || last.At != us(2400)*500+ms(3) {
		t.Errorf("the last one, %d, ends at %v", last.Request, last.At)
	}
	s.Services[0].Parallel = -1
	for _, r := range play(t, s, 1).of(RecordWorked) {
		if r.Elapsed != us(2400) {
			t.Errorf("with room for all one took %v", r.Elapsed)
		}
	}
}

// TestServiceFull: what finds no place to wait fails at once and is not reported.
func TestServiceFull(t *testing.T) {
	s := working(func(s *Scenario) {
		s.Services[0].Parallel, s.Services[0].Time, s.Services[0].Queue = 1, Constant(ms(10)), 3
	})
	got := play(t, s, 1)
	refused := got.count(RecordWorked, func(r *Record) bool {
		if r.Refused && r.Elapsed != 0 || !r.Refused && r.Elapsed > ms(40) {
			t.Errorf("%v: refused %v after %v", r.At, r.Refused, r.Elapsed)
		}
		return r.Refused
	})
	if refused < 890 || refused > 900 || len(got.of(RecordReport)) != 1000-refused {
		t.Errorf("%d of 1000 were refused, %d reported", refused, len(got.of(RecordReport)))
	}
}

// TestReports: a sample is reported, at random, by the client that did the work, to all servers.
func TestReports(t *testing.T) {
	s := working(func(s *Scenario) { dense(s, 4000); s.Services[0].Sample = 4 })
	got := play(t, s, 1)
	reports := len(got.of(RecordReport))
	if !near(reports, 4000, 0.25) {
		t.Errorf("%d of 4000 were reported, not a quarter", reports)
	}
	observed := got.count(RecordServe, func(r *Record) bool { return r.Verdict == limiter.Observed })
	if observed != 2*reports {
		t.Errorf("%d reports were observed %d times by two servers", reports, observed)
	}
	s.Services[0].Sample = -1
	if n := len(play(t, s, 1).of(RecordReport)); n != 0 {
		t.Errorf("%d reports where there are to be none", n)
	}
}

// TestGuard: reports reach the trackers that guards are about.
func TestGuard(t *testing.T) {
	s := working(func(s *Scenario) {
		s.Clients[0].Mix[0].Guard = []Guard{{"t", ms(10)}}
		s.Faults = []Fault{{Kind: FaultWork, At: ms(300), For: ms(100), Service: "db", Dist: Constant(ms(50))}}
	})
	got := play(t, s, 1)
	for _, r := range got.of(RecordDecide) {
		switch {
		case r.At < ms(300) && !r.Granted:
			t.Fatalf("%v: rejected, all is well", r.At)
		case r.At > ms(600) && r.Granted:
			t.Fatalf("%v: granted, with samples of 50 ms", r.At)
		}
	}
	slow := got.count(RecordWorked, func(r *Record) bool { return r.Elapsed >= ms(52) })
	if slow < 32 {
		t.Errorf("%d pieces of work were slow", slow)
	}
}
