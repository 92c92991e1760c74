package limiter

import (
	"testing"

	"github.com/weirhq/weir/wire"
)

// newPacer returns a pacer that has counted so many requests, grants and reports, evenly over the last
// second of ten.
func newPacer(ask, grant, report int) (*pacer, int64) {
	p := &pacer{threshold: 100, probe: defaultProbe * nsPerMs}
	p.start(0)
	for at := int64(0); at < 10*second; at += nsPerMs {
		for what, n := range []int{asked: ask, granted: grant, reported: report} {
			if n > 0 && at/nsPerMs%(1000/int64(n)) == 0 {
				p.count(at, what)
			}
		}
	}
	return p, 10 * second
}

// about reports whether two rates are within a twentieth.
func about(got, want uint64) bool { return got > want-want/20 && got < want+want/20 }

// TestPacerTrip: what a trip notes is told apart from what is merely asked.
func TestPacerTrip(t *testing.T) {
	p, now := newPacer(1000, 500, 125)
	p.trip(now, 150)
	if p.state != draining || !about(p.rate, 500_000) || !about(p.flow, 125_000) || !about(p.capacity, 500_000) {
		t.Errorf("state %d, rate %d, flow %d, capacity %d", p.state, p.rate, p.flow, p.capacity)
	}
	if p.latency != 150 || p.until != now+150*nsPerMs {
		t.Errorf("latency %d, until %d", p.latency, p.until)
	}
	if p.turn != now+1 {
		t.Errorf("long after a grant the next turn is %d ns after the trip", p.turn-now)
	}
	p.spend(now - 10*nsPerMs)
	p.state, p.rate = pacing, 77_000
	p.trip(now, 150)
	if p.rate != 77_000 {
		t.Errorf("a second trip forgets the rate that was: %d", p.rate)
	}
	if p.turn != now-10*nsPerMs+p.probe {
		t.Errorf("10 ms after a grant the next turn is %d ns after the trip", p.turn-now)
	}
}

// TestPacerDry: draining ends when the estimate's time is over, or when reports have ceased for eight of
// their gaps and 2 ms.
func TestPacerDry(t *testing.T) {
	p, now := newPacer(1000, 1000, 1000)
	p.trip(now, 150)
	p.flow = 1_000_000
	p.reported = now - second
	if p.dry(now+10*nsPerMs) || !p.dry(now+10*nsPerMs+1) {
		t.Error("without a report since the trip its gaps do not count from there")
	}
	last := now + 5*nsPerMs
	p.report(last, 150)
	for _, c := range []struct {
		at   int64
		want bool
	}{
		{last + 10*nsPerMs, false},
		{last + 10*nsPerMs + 1, true},
		{now + 150*nsPerMs, true},
	} {
		if got := p.dry(c.at); got != c.want {
			t.Errorf("%v after the trip, %v after the last report: %v", c.at-now, c.at-last, got)
		}
	}
	p.flow = 0
	if at := now + 150*nsPerMs; p.dry(at-1) || !p.dry(at) {
		t.Error("without reports draining does not take just the estimate's time")
	}
}

// TestPacerSettle: the rate to begin with.
func TestPacerSettle(t *testing.T) {
	for _, c := range []struct {
		name           string
		rate, capacity uint64
		drained        uint32
		want           uint64
	}{
		{"nine tenths of what the service did", 2_000_000, 1_000_000, 0, 900_000},
		{"never above what it was", 500_000, 1_000_000, 0, 450_000},
		{"more was done while it drained", 2_000_000, 400_000, 100, 900_000},
		{"less was", 2_000_000, 1_000_000, 10, 900_000},
		{"no reports at all", 500_000, 0, 0, 250_000},
		{"never below the probes", 100, 100, 0, milliNs / (defaultProbe * nsPerMs)},
	} {
		p, now := newPacer(1000, 1000, 1000)
		p.trip(now-100*nsPerMs, 100)
		p.rate, p.capacity, p.drained = c.rate, c.capacity, c.drained
		p.settle(now)
		if !about(p.rate, c.want) {
			t.Errorf("%s: a rate of %d, want %d", c.name, p.rate, c.want)
		}
		if p.state != pacing || p.turn != now || p.grow != now+growEvery {
			t.Errorf("%s: state %d, turn %d, grow %d", c.name, p.state, p.turn-now, p.grow-now)
		}
	}
}

// TestPacerSpeedUp: the rate grows by 2 % each 100 ms, and by one more for every second.
func TestPacerSpeedUp(t *testing.T) {
	fresh := func() (*pacer, int64) {
		p, now := newPacer(1000, 1000, 1000)
		p.trip(now, 100)
		p.rate, p.capacity = 1_000_000, 0
		p.settle(now)
		p.rate = 1_000_000
		p.report(now+1, 50)
		return p, now
	}
	p, now := fresh()
	if p.speedUp(now + growEvery - 1); p.rate != 1_000_000 {
		t.Errorf("before 100 ms: %d", p.rate)
	}
	// A tenth of a percent comes for each 100 ms: 2.1 % after the first.
	if p.speedUp(now + growEvery); p.rate != 1_021_001 {
		t.Errorf("after 100 ms: %d", p.rate)
	}
	p.speedUp(now + 20*second)
	before := p.rate
	if p.speedUp(now + 20*second + growEvery); p.rate != before+before/10+1 {
		t.Errorf("after 20 s it grows from %d to %d, want a tenth", before, p.rate)
	}

	p, now = fresh()
	p.report(now+2, 100)
	if p.speedUp(now + second); p.rate != 1_000_000 {
		t.Errorf("while reports are at the threshold: %d", p.rate)
	}
	p.report(now+second, 99)
	if p.speedUp(now + second + growEvery); p.rate != 1_000_000+31_001 {
		t.Errorf("when reports are good again the first step leads to %d", p.rate)
	}

	p, now = fresh()
	p.reported, p.latency = now-1, 500
	if p.speedUp(now + 499*nsPerMs); p.rate != 1_000_000 {
		t.Errorf("before a first report could be there: %d", p.rate)
	}
	if p.speedUp(now + 650*nsPerMs); p.rate == 1_000_000 {
		t.Error("without reports it does not grow")
	}
}

// TestPacerEnds: pacing ends when the rate is more than twice the demand, not before 300 ms.
func TestPacerEnds(t *testing.T) {
	p, now := newPacer(1000, 1000, 1000)
	p.state, p.settled, p.rate = pacing, now-settling, 2_200_000
	if !p.recovered(now) {
		t.Error("2200/s for a demand of 1000/s is not enough")
	}
	if p.rate = 1_900_000; p.recovered(now) {
		t.Error("1900/s for a demand of 1000/s is enough")
	}
	if p.rate, p.settled = 2_200_000, now-settling+1; p.recovered(now) {
		t.Error("it ends before 300 ms")
	}
}

// TestPacerSpend: requests pass evenly, with 5 ms to catch up.
func TestPacerSpend(t *testing.T) {
	p, now := newPacer(1000, 1000, 1000)
	p.state, p.rate, p.turn = pacing, 1_000_000, now
	passed := func(at int64) (n int) {
		for at >= p.turn {
			p.spend(at)
			n++
		}
		return n
	}
	if n := passed(now); n != 1 {
		t.Errorf("%d at once", n)
	}
	if n := passed(now + 3*nsPerMs); n != 3 {
		t.Errorf("%d after 3 ms of 1000/s", n)
	}
	if n := passed(now + second); n != 6 {
		t.Errorf("%d after a second of silence, want what 5 ms make and the next", n)
	}
	// One that comes late by less than its gap takes its own turn, and the next comes when it would have.
	p.rate, p.turn = 10_000, now+2*second
	if p.spend(now + 2*second + 50*nsPerMs); p.turn != now+2*second+100*nsPerMs {
		t.Errorf("at 10/s, after one that was late by 50 ms, the next turn is %d ns after that of the first", p.turn-now-2*second)
	}
	p.state = draining
	if p.spend(now + second); p.turn != now+second+p.probe {
		t.Errorf("the next probe is %d ns away", p.turn-now-second)
	}
}

// TestTripAtThreshold: an estimate at the threshold trips, and it is the estimate that guards go by.
func TestTripAtThreshold(t *testing.T) {
	c := testConfig()
	c.Pacing = true
	for _, latency := range []uint32{99, 100} {
		r := newRig(t, c)
		w := watch{"service", 10_000, 32, 1}
		r.report(w.took(latency))
		want := Granted
		if latency == 100 {
			want = Rejected
		}
		if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{w.below(100)}}); v != want {
			t.Errorf("at %d ms: %v", latency, v)
		}
		if trips := r.e.Stats().Trips; trips != uint64(latency-99) {
			t.Errorf("at %d ms: %d trips", latency, trips)
		}
	}
}

// TestLatestSamples: the median of the last five, or as many as the tracker asks for; the smallest for
// the estimator of that name.
func TestLatestSamples(t *testing.T) {
	for _, c := range []struct {
		e       Estimator
		minimum uint32
		count   int
		want    uint32
	}{
		{P50, 1, 4, 0},
		{P50, 1, 5, 3},
		{P50, 1, 20, 18},
		{P99, 1, 20, 18},
		{Min, 1, 20, 16},
		{P50, 8, 20, 16},
		{P50, 8, 7, 0},
		{P50, 17, 20, 0},
	} {
		cfg := testConfig()
		cfg.Pacing, cfg.Estimator = true, c.e
		r := newRig(t, cfg)
		w := watch{"service", 10_000, 32, c.minimum}
		for i := range uint32(c.count) {
			r.report(w.took(i + 1))
		}
		tr := &r.e.trackers
		g := w.below(100)
		key := guardKey(&g, wire.Layout2)
		if got := tr.latest(tr.pool.at(tr.find(&key, key.hash(tr.hash)))); got != c.want {
			t.Errorf("%v, at least %d of %d: %d, want %d", c.e, c.minimum, c.count, got, c.want)
		}
	}
}

// TestFirstProbeWaits: nothing passes at once after a first trip, however long the clock has run.
func TestFirstProbeWaits(t *testing.T) {
	c := testConfig()
	c.Pacing = true
	r := newRig(t, c)
	r.now.Mono = 1 << 60
	w := watch{"service", 10_000, 32, 1}
	r.report(w.took(5000))
	g := w.below(100)
	r.guard(g)
	for ms := range 899 {
		r.pass(nsPerMs)
		if got := r.guard(g); got != 5000 {
			t.Fatalf("%d ms after the trip a request was told %d", ms+1, got)
		}
	}
	r.pass(nsPerMs)
	if got := r.guard(g); got != 99 {
		t.Errorf("the probe was told %d", got)
	}
}

// TestProbeInterval: a short-lived tracker is probed before it has forgotten.
func TestProbeInterval(t *testing.T) {
	tr := trackers{probe: defaultProbe}
	for ttl, want := range map[uint32]int64{10_000: 900 * nsPerMs, 1000: 500 * nsPerMs, 1: nsPerMs} {
		if got := tr.probeInterval(&tracker{key: trackerKey{ttl: ttl}}); got != want {
			t.Errorf("TTL %d ms: %d", ttl, got)
		}
	}
}

// TestPacerCountsReports: those since the trip tell what the service does while it drains.
func TestPacerCountsReports(t *testing.T) {
	p, now := newPacer(1000, 1000, 1000)
	p.trip(now, 100)
	p.capacity = 0
	for i := range 50 {
		p.report(now+int64(i)*nsPerMs, 150)
	}
	if p.settle(now + 100*nsPerMs); !about(p.rate, 450_000) {
		t.Errorf("50 reports in 100 ms make a rate of %d", p.rate)
	}
}

// TestPacedRequestLeavesOthersAlone: a request spends of its own guards' rates only, and a threshold of
// 0 has none.
func TestPacedRequestLeavesOthersAlone(t *testing.T) {
	r, w := tripped(t)
	g := w.below(100)
	if got := r.guard(g); got != 150 {
		t.Errorf("right after the trip a request was told %d", got)
	}
	r.pass(150 * nsPerMs)
	r.send(r.header(), wire.Request{Guards: []wire.Guard{g}, Resources: []wire.Resource{take("never", 1000, 0, 1)}})
	for range 3 {
		if v := r.ask(take("checkout", 1000, 10, 1)); v != Granted {
			t.Fatal(v)
		}
	}
	if got := r.guard(g); got >= 100 {
		t.Errorf("requests without the guard took its room: %d", got)
	}
	before := r.e.Stats().Pacers
	r.guard(w.below(0))
	if got := r.e.Stats().Pacers; got != before {
		t.Errorf("a threshold of 0 has a pacer")
	}
}

// TestPacingEnds: when less is asked for than the service can do, nothing is paced any more.
func TestPacingEnds(t *testing.T) {
	r, w := tripped(t)
	g := w.below(100)
	for i := 0; r.e.Stats().Pacing > 0; i++ {
		if i == 20_000 {
			t.Fatal("it is still paced after 200 s")
		}
		r.pass(10 * nsPerMs)
		if r.guard(g) < 100 {
			r.report(w.took(5))
		}
	}
	for range 100 {
		if got := r.guard(g); got != 5 {
			t.Fatalf("not paced any more, a guard was told %d", got)
		}
	}
}
