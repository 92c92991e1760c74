package sim

import (
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
)

// TestMeasureTimelineBins holds the default length of a bin and where the last one ends.
func TestMeasureTimelineBins(t *testing.T) {
	for _, tt := range []struct {
		length, bin, want time.Duration
		bins              int
	}{
		{10 * time.Second, 0, 100 * time.Millisecond, 100},
		{10*time.Second + 1, 0, 100 * time.Millisecond, 101},
		{60 * time.Second, 0, 300 * time.Millisecond, 200},
		{time.Second, 400 * time.Millisecond, 400 * time.Millisecond, 3},
	} {
		s := scriptScenario()
		s.Length = tt.length
		if m := newScript(t, s, MeasureOptions{Bin: tt.bin}).finish(); m.Timeline.Bin != tt.want || len(m.Timeline.Bins) != tt.bins {
			t.Errorf("%v: %d bins of %v, want %d of %v", tt.length, len(m.Timeline.Bins), m.Timeline.Bin, tt.bins, tt.want)
		}
	}
}

// TestMeasureDips has bins of 1 s with ten requests each, of which in some a few time out.
func TestMeasureDips(t *testing.T) {
	undecided := []uint64{0, 3, 5, 0, 2, 0, 0, 1, 0, 0}
	p := newScript(t, scriptScenario(), MeasureOptions{Bin: time.Second})
	number := uint64(0)
	for bin, lost := range undecided {
		second := time.Duration(1000 * bin)
		switch bin {
		case 1:
			p.fault(second+200, 0, true)
		case 2:
			p.fault(second+500, 0, false)
		case 4:
			p.fault(second, 2, true) // of an instant, and for good
		case 6:
			p.fault(second+900, 1, true)
		}
		for i := range uint64(10) {
			number++
			p.ask(second+900, number)
			if i+lost < 10 {
				p.decide(second+900, number, 0, core.Granted)
			}
		}
		for i := range lost {
			p.decide(second+960, number-i, -1, core.TimedOut)
		}
	}
	m := p.finish()
	want := []FaultEffect{
		// From the bin of 1.2 s to that of 3 s; the last bad one ends at 3 s.
		{
			Fault: 0, Begin: 1200 * at, End: 2500 * at, Lowest: 500_000, Submitted: 20, Lost: 8, Recovery: 1800 * at, Recovered: true,
			Watched: 1500 * at,
		},
		{
			Fault: 2, Begin: 4000 * at, End: 10_000 * at, Lowest: 800_000, Submitted: 10, Lost: 2, Recovery: time.Second, Recovered: true,
			Watched: 2900 * at,
		},
		{
			Fault: 1, Begin: 6900 * at, End: 10_000 * at, Lowest: 900_000, Submitted: 20, Lost: 1, Recovery: 1100 * at, Recovered: true,
		},
	}
	for i, w := range want {
		if m.Faults[i] != w {
			t.Errorf("fault %d: %+v, want %+v", i, m.Faults[i], w)
		}
	}
	wants(t, m, map[string]float64{
		"lowest_availability_percent": 50, "recovery_ms": 1800, "dip_undecided_percent": 22, "convergence_ms": 0, "availability_percent": 89,
	})
}

// TestMeasureNoRecovery has the last bin of a fault's wake be a bad one.
func TestMeasureNoRecovery(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{Bin: time.Second})
	p.fault(9500, 0, true)
	p.ask(9600, 1)
	p.decide(9660, 1, -1, core.TimedOut)
	p.fault(12_000, 0, false) // after the last request
	if e := p.finish().Faults[0]; e.Recovered || e.Lowest != 0 || e.Recovery != 500*at || e.End != 10*time.Second || e.Watched != 0 {
		t.Errorf("%+v", e)
	}
}

// TestMeasureConvergence counts from the end of a fault, from the beginning of one that is for
// good, and until the next begins.
func TestMeasureConvergence(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	number := uint64(0)
	// differ has two servers disagree about a request, the second of them late.
	differ := func(ms time.Duration) {
		number++
		p.ask(ms, number)
		p.serve(ms+1, number, 0, limiter.Granted)
		p.serve(ms+30, number, 1, limiter.Rejected)
		p.serve(ms+31, number, 2, limiter.Granted)
	}
	differ(100) // before any fault
	p.fault(1000, 0, true)
	differ(1500) // while it lasts
	number++     // submitted while it lasts, told from then on
	p.ask(1999, number)
	p.serve(1999, number, 1, limiter.Granted)
	p.fault(2000, 0, false)
	p.serve(2001, number, 0, limiter.Rejected)
	differ(2000)
	differ(2350)
	p.fault(3000, 2, true) // for good, whatever is told of its end
	differ(3000)
	differ(3075)
	p.fault(4000, 2, false)
	differ(4500)
	p.fault(5000, 1, true)
	differ(5500)
	m := p.finish()
	for i, w := range []struct {
		fault                int
		convergence, watched time.Duration
		disagreed            uint64
	}{{0, 350, 1000, 2}, {2, 1500, 2000, 3}, {1, 0, 0, 0}} {
		if e := m.Faults[i]; e.Fault != w.fault || e.Convergence != w.convergence*at || e.Watched != w.watched*at || e.Disagreed != w.disagreed {
			t.Errorf("fault %d: %+v, want %+v", i, e, w)
		}
	}
	if d := m.Disagree; d != (Disagreements{Compared: 9, Disagreed: 9}) {
		t.Errorf("%+v", d)
	}
	if b := m.Timeline.Bins[20]; b.Compared != 1 || b.Disagreed != 1 {
		t.Errorf("the bin of 2 s: %+v", b)
	}
	wants(t, m, map[string]float64{"convergence_ms": 1500})
}

// TestMeasureServices has two places be busy, a queue form, work come too late, and none for a while.
func TestMeasureServices(t *testing.T) {
	s := scriptScenario()
	s.Length, s.Warmup = 6*time.Second, time.Second
	p := newScript(t, s, MeasureOptions{})
	work := func(ms time.Duration, number uint64) {
		p.put(&Record{At: ms * at, Kind: RecordWork, Request: number})
	}
	ends := func(ms time.Duration, number uint64, took time.Duration) {
		p.put(&Record{At: ms * at, Kind: RecordWorked, Request: number, Elapsed: took * at})
	}
	for n := range uint64(7) {
		choice := 1 // below 100 ms
		if n == 6 {
			choice = 2 // no guard
		}
		p.submit(900, n+1, int(n%4), choice, nil)
	}
	work(900, 1)
	work(1000, 2)
	ends(1050, 1, 150) // too late; one place busy since 1000, then both
	work(1050, 3)
	work(1060, 4) // waits
	ends(1099, 2, 99)
	ends(1150, 3, 100) // not below the threshold
	ends(1200, 4, 140)
	work(3000, 5)
	p.put(&Record{At: 3000 * at, Kind: RecordWorked, Request: 5, Refused: true})
	work(4000, 7)
	ends(5500, 7, 1500)
	work(5900, 6) // goes on beyond the end
	ends(6100, 6, 200)
	for n, choice := range []int{0, 1, 1, 2} {
		p.submit(5000, uint64(n+8), 0, choice, nil)
		p.decide(5001, uint64(n+8), 0, core.Rejected)
	}
	m := p.finish()
	u := &m.Services[0]
	// 1000 to 1150 both, to 1200 one, 4000 to 5500 one, 5900 to 6000 one.
	busy := time.Duration((2*150 + 50 + 1500 + 100) * at)
	if u.Busy != busy || u.Capacity != 10*time.Second {
		t.Errorf("busy for %v of %v, want %v", u.Busy, u.Capacity, busy)
	}
	if u.Admitted != 6 || u.Completed != 5 || u.Good != 2 || u.Refused != 1 || u.Rejected != 3 || u.Latency.Max() != int64(1500*at) {
		t.Errorf("%+v", u)
	}
	// Of the seconds from 1 on the third has none: 1, 3, 4 and 5 do.
	if u.Idle != 1 || u.Seconds[1] != (Second{Admitted: 3, Completed: 4, Good: 1}) || u.Seconds[5] != (Second{Admitted: 1, Completed: 1, Good: 1, Rejected: 3}) {
		t.Errorf("%d idle, %+v", u.Idle, u.Seconds)
	}
	good := 100 * (float64(busy) * (2.0 / 5.0)) / float64(10*time.Second)
	wants(t, m, map[string]float64{
		"goodput_percent": good, "idle_seconds": 1, "work_completed": 5, "work_refused": 1, "work_rejected": 3, "work_latency_p99_ms": 1500,
	})
}

// TestMeasureFaultAfterFault has a fault begin in the instant in which another ends: what follows is the second
// one's.
func TestMeasureFaultAfterFault(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	p.fault(1000, 0, true)
	p.fault(2000, 0, false)
	p.fault(2000, 1, true)
	p.ask(2500, 1)
	p.serve(2501, 1, 0, limiter.Granted)
	p.serve(2501, 1, 1, limiter.Rejected)
	p.fault(3000, 1, false)
	p.ask(3100, 2)
	p.serve(3101, 2, 0, limiter.Granted)
	p.serve(3101, 2, 1, limiter.Rejected)
	m := p.finish()
	if e := m.Faults[0]; e.Convergence != 0 || e.Watched != 0 || e.Disagreed != 0 {
		t.Errorf("the first: %+v", e)
	}
	if e := m.Faults[1]; e.Convergence != 100*at || e.Disagreed != 1 {
		t.Errorf("the second: %+v", e)
	}
}
