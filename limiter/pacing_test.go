package limiter

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/wire"
)

var pacingTable = flag.Bool("pacing-table", false, "print what every estimator does in every loop, with and without pacing, as the table of docs/pacing.md")

// queueing is a service that works from a queue, a second's worth of work in a second.
func queueing(perSecond float64, threshold uint32) *service {
	return &service{name: "service", servers: 1, perSecond: perSecond, threshold: threshold}
}

// overloads are the loops that pacing is held against, with what must at least come of them.
var overloads = []struct {
	name    string
	loop    loop
	bar     float64 // of goodput, from the sixth second on
	granted float64 // of what is offered
}{
	{"2 times its capacity", loop{services: []*service{queueing(1000, 100)}, load: steady(2000)}, 700, 0},
	{"10 times", loop{services: []*service{queueing(1000, 100)}, load: steady(10_000)}, 600, 0},
	{
		"2 times, work always as long",
		loop{services: []*service{{name: "service", servers: 1, perSecond: 1000, even: true, threshold: 100}}, load: steady(2000)},
		700, 0,
	},
	{
		"50/s, 2 times",
		loop{services: []*service{{name: "service", servers: 1, perSecond: 50, even: true, threshold: 100}}, load: steady(100)},
		35, 0,
	},
	{
		"50/s, 10 times",
		loop{services: []*service{{name: "service", servers: 1, perSecond: 50, even: true, threshold: 100}}, load: steady(500)},
		30, 0,
	},
	{
		"ten servers in parallel, 2 times",
		loop{services: []*service{{name: "service", servers: 10, perSecond: 1000, threshold: 100}}, load: steady(2000)},
		700, 0,
	},
	{
		"ten servers in parallel, 10 times",
		loop{services: []*service{{name: "service", servers: 10, perSecond: 1000, threshold: 100}}, load: steady(10_000)},
		600, 0,
	},
	{"1 report in 10, 2 times", loop{services: []*service{queueing(1000, 100)}, load: steady(2000), sampled: 10}, 700, 0},
	{"1 report in 10, 10 times", loop{services: []*service{queueing(1000, 100)}, load: steady(10_000), sampled: 10}, 600, 0},
	{
		"two guards at once",
		loop{services: []*service{{name: "wide", servers: 1, perSecond: 1000, threshold: 100}, queueing(500, 100)}, load: steady(2000)},
		350, 0,
	},
	{"load 0.8", loop{services: []*service{queueing(1000, 100)}, load: steady(800)}, 0, 1},
	{"load 0.95", loop{services: []*service{queueing(1000, 100)}, load: steady(950)}, 0, 0.98},
	{
		"natural latency just under the threshold",
		loop{services: []*service{{name: "service", servers: 1, perSecond: 1000, even: true, threshold: 100, delay: steady(97)}}, load: steady(300)},
		0, 1,
	},
}

// TestPacingHoldsGoodput drives services beyond what they can do and sees that most of what they do is
// under the threshold, second after second.
func TestPacingHoldsGoodput(t *testing.T) {
	for _, c := range overloads {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				l := c.loop
				l.seconds, l.seed, l.pacing, l.samples, l.ttl = 40, seed, true, 32, 10_000
				o := l.run(t)
				if got := o.goodput(5); got < c.bar {
					t.Errorf("seed %d: goodput %.0f/s, want %.0f: %v", seed, got, c.bar, &o)
				}
				if share := float64(o.granted) / float64(o.offered); share < c.granted {
					t.Errorf("seed %d: %.4f of the requests were granted, want %.2f", seed, share, c.granted)
				}
				if idle := o.idle(); idle != nil {
					t.Errorf("seed %d: nothing was admitted in the seconds %v", seed, idle)
				}
			}
		})
	}
}

// TestPacingRidesOutASpike: five seconds of ten times the capacity are over when they are over.
func TestPacingRidesOutASpike(t *testing.T) {
	l := loop{
		seconds: 40, seed: 1, pacing: true, samples: 32, ttl: 10_000, services: []*service{queueing(1000, 100)},
		load: func(second float64) float64 {
			if second >= 15 && second < 20 {
				return 10_000
			}
			return 500
		},
	}
	o := l.run(t)
	for s, n := range o.good {
		least := 350
		if s >= 15 && s < 23 {
			least = 0 // the backlog of the first moments comes out late
		}
		if n < least {
			t.Errorf("second %d: %d good", s, n)
		}
	}
	if o.idle() != nil {
		t.Errorf("nothing was admitted in the seconds %v", o.idle())
	}
	if n := o.good[17] + o.good[18] + o.good[19]; n < 1800 {
		t.Errorf("%d good in the last three seconds of the spike", n)
	}
}

// TestPacingShedsWhatIsSimplySlow: a service whose latency has nothing to do with its load is left
// alone but for probes, and comes back when it heals.
func TestPacingShedsWhatIsSimplySlow(t *testing.T) {
	const heals = 40
	for _, slow := range []float64{105, 150, 2500} {
		s := queueing(1000, 100)
		s.delay = func(second float64) float64 {
			if second < heals {
				return slow
			}
			return 5
		}
		l := loop{seconds: heals + 30, seed: 1, pacing: true, samples: 32, ttl: 10_000, services: []*service{s}, load: steady(300)}
		o := l.run(t)
		probes := 0
		for _, n := range o.admitted[heals-10 : heals] {
			probes += n
		}
		if probes < 5 || probes > 40 {
			t.Errorf("%v ms: %d requests were let through in the last ten seconds of slowness; a probe a second or a few", slow, probes)
		}
		if o.idle() != nil {
			t.Errorf("%v ms: nothing was admitted in the seconds %v", slow, o.idle())
		}
		for sec := heals + 15; sec < len(o.admitted); sec++ {
			if o.admitted[sec] < 230 {
				t.Errorf("%v ms: %d admitted in second %d, %d after it healed", slow, o.admitted[sec], sec, sec-heals)
			}
		}
	}
}

// TestPacingTable prints the table of docs/pacing.md.
func TestPacingTable(t *testing.T) {
	if !*pacingTable {
		t.Skip("run with -pacing-table")
	}
	fmt.Println("| load | estimator | pacing: goodput | granted | idle seconds | off: goodput | granted | idle seconds |\n|---|---|---|---|---|---|---|---|")
	for _, c := range overloads {
		for e := range estimators {
			fmt.Printf("| %s | %v |", c.name, e)
			for _, paced := range []bool{true, false} {
				l := c.loop
				l.seconds, l.seed, l.pacing, l.shed, l.samples, l.ttl = 40, 1, paced, e, 32, 10_000
				o := l.run(t)
				capacity := l.services[len(l.services)-1].perSecond
				fmt.Printf(" %.2f | %.3f | %d |", o.goodput(5)/capacity, float64(o.granted)/float64(o.offered), len(o.idle()))
			}
			fmt.Println()
		}
	}
}

// tripped returns an engine with a guard that has just tripped, at 150 ms.
func tripped(t *testing.T) (*rig, watch) {
	c := testConfig()
	c.Pacing = true
	r := newRig(t, c)
	w := watch{"service", 10_000, 32, 1}
	r.report(w.took(150))
	if got := r.guard(w.below(100)); got != 150 {
		t.Fatalf("the tripping request was told %d", got)
	}
	return r, w
}

// TestPacerLetsProbesPass goes through a trip by hand: nothing but probes while it drains, then the
// least rate, as many as asked of it once reports are good.
func TestPacerLetsProbesPass(t *testing.T) {
	r, w := tripped(t)
	g := w.below(100)
	r.pass(149 * nsPerMs)
	if got := r.guard(g); got < 100 {
		t.Errorf("while it drains a request passed with %d", got)
	}
	r.pass(1 * nsPerMs) // drained: the estimate's time is over
	if got := r.guard(g); got != 0 {
		t.Errorf("after it has drained the first request was told %d", got)
	}
	if got := r.guard(g); got != 150 {
		t.Errorf("the second was told %d; it is over the rate", got)
	}
	r.pass(defaultProbe*nsPerMs - 1)
	if got := r.guard(g); got != 150 {
		t.Errorf("a ns before the next probe a request was told %d", got)
	}
	r.pass(1)
	if got := r.guard(g); got >= 100 {
		t.Errorf("the next probe was told %d", got)
	}
}

// TestPacedRequestSpendsAsAWhole: a request that a bucket rejects takes nothing of the rate, and one
// that carries a guard twice takes it once.
func TestPacedRequestSpendsAsAWhole(t *testing.T) {
	r, w := tripped(t)
	g := w.below(100)
	r.pass(150 * nsPerMs)
	never := take("never", 1000, 0, 1)
	for range 3 {
		if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{g}, Resources: []wire.Resource{never}}); v != Rejected || r.ans.Latencies[0] >= 100 {
			t.Fatalf("%v, the guard was told %d; it had room", v, r.ans.Latencies[0])
		}
	}
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{g, g}}); v != Granted {
		t.Fatalf("a request that carries the guard twice: %v, %v", v, r.ans.Latencies)
	}
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{g}}); v != Rejected {
		t.Errorf("the one after it: %v", v)
	}
}

// TestGuardTwiceIsOneGuard: two blocks of one guard count and spend as one.
func TestGuardTwiceIsOneGuard(t *testing.T) {
	var states []string
	for _, blocks := range []int{1, 2} {
		r, w := tripped(t)
		r.pass(150 * nsPerMs)
		if v := r.send(r.header(), wire.Request{Guards: slices.Repeat([]wire.Guard{w.below(100)}, blocks)}); v != Granted {
			t.Fatal(v)
		}
		states = append(states, r.state())
	}
	if states[0] != states[1] {
		t.Errorf("with a guard once\n%s\nand twice\n%s", states[0], states[1])
	}
}

// TestPacersApart: another threshold is not paced with the one that tripped, one of 0 never passes, and
// beyond eight thresholds a guard sheds plainly.
func TestPacersApart(t *testing.T) {
	r, w := tripped(t)
	if got := r.guard(w.below(1000)); got != 150 {
		t.Errorf("a threshold of 1000 was told %d", got)
	}
	if v := r.send(r.header(), wire.Request{Guards: []wire.Guard{w.below(0)}}); v != Rejected {
		t.Errorf("a threshold of 0: %v", v)
	}
	for i := range uint32(10) {
		r.guard(w.below(2000 + i))
	}
	if got := r.e.trackers.pacers.live; got != maxPacers {
		t.Errorf("%d pacers", got)
	}
	if got := r.guard(w.below(140)); got != 150 {
		t.Errorf("a guard without a pacer was told %d", got)
	}
}

// TestPacingOff: a reconfigured engine sheds plainly at once.
func TestPacingOff(t *testing.T) {
	r, w := tripped(t)
	if err := r.e.Reconfigure(testConfig()); err != nil {
		t.Fatal(err)
	}
	r.pass(nsPerMs)
	if got := r.guard(w.below(151)); got != 150 {
		t.Errorf("a guard above the estimate was told %d", got)
	}
	if got := r.guard(w.below(100)); got != 150 {
		t.Errorf("a guard under the estimate was told %d", got)
	}
}

// TestPacersGo: what nobody asks for any more is taken back with its tracker.
func TestPacersGo(t *testing.T) {
	r, w := tripped(t)
	r.guard(w.below(2000))
	if s := r.e.Stats(); s.Pacers != 2 || s.Pacing != 1 || s.Trips != 1 {
		t.Fatalf("%+v", s)
	}
	for range 30 {
		r.pass(second)
		r.e.Reclaim(r.now, 100)
	}
	if s := r.e.Stats(); s.Pacers != 0 || s.Pacing != 0 || s.Trackers != 0 {
		t.Errorf("%+v", s)
	}
}

// TestMeter holds the meter against a list of its events.
func TestMeter(t *testing.T) {
	var m meter
	m.start(0)
	var grants []int64
	now := int64(0)
	for i := range 5000 {
		now += int64(1+i%7) * 1_300_000
		m.count(now, granted)
		grants = append(grants, now)
		if i < 40 {
			continue
		}
		back := slices.Index(grants, grants[len(grants)-meterEnough])
		span := now - grants[back]
		want := float64(meterEnough-1) / float64(span) * 1e12
		if got := float64(m.rate(now, granted)); got < want*0.6 || got > want*1.7 {
			t.Fatalf("event %d: a rate of %.0f; the last %d came at %.0f", i, got, meterEnough, want)
		}
	}
	if got := m.rate(now+1000*second, granted); got != 0 {
		t.Errorf("long after, a rate of %d", got)
	}
}

// TestMeterPerGrant: however long answers take and however many of them are reported, capacity is told
// in requests.
func TestMeterPerGrant(t *testing.T) {
	for _, latency := range []int64{1, 100, 900, 1500} {
		for _, of := range []int{1, 2, 10} {
			var m meter
			m.start(0)
			const gap = 2 * nsPerMs
			for now := int64(0); now < 20*second; now += gap {
				m.count(now, granted)
				if n := now / gap; now >= latency*nsPerMs && n%int64(of) == 0 {
					m.count(now, reported)
				}
			}
			now := 20 * second
			if got := m.perGrant(1000, now, uint32(latency)); got < uint64(of)*940 || got > uint64(of)*1060 {
				t.Errorf("latency %d ms, 1 report in %d: 1 report a second is %d thousandths of a request", latency, of, got)
			}
		}
	}
}

// TestMeterLooksBackASlot: what comes at once is no rate.
func TestMeterLooksBackASlot(t *testing.T) {
	var m meter
	m.start(0)
	now := 20 * meterSlot
	for at := int64(0); at < now; at += 10 * nsPerMs {
		m.count(at, asked)
	}
	for i := range int64(40) {
		m.count(now+i*nsPerMs/40, asked)
	}
	// 40, and the 13 or 14 of the slot before, in as long as that and a millisecond.
	if got := m.rate(now+nsPerMs, asked); got < 380_000 || got > 410_000 {
		t.Errorf("a stream of 100/s and 40 at once are told as %d thousandths a second", got)
	}
}

// TestMeterBegins: a first event is not the rate of a nanosecond.
func TestMeterBegins(t *testing.T) {
	var m meter
	m.start(3 * meterSlot)
	m.count(3*meterSlot, asked)
	if got := m.rate(3*meterSlot+1, asked); got != 1_000_000 {
		t.Errorf("one event in a nanosecond: %d thousandths a second, want what a millisecond makes of it", got)
	}
}

// TestMeterFewGrants: a handful of grants says nothing of how many reports come of one.
func TestMeterFewGrants(t *testing.T) {
	for grants, want := range map[int]uint64{15: 1000, 16: 16_000} {
		var m meter
		m.start(0)
		for range grants {
			m.count(0, granted)
		}
		m.count(second, reported)
		if got := m.perGrant(1000, second, 100); got != want {
			t.Errorf("of %d grants one is reported: 1 report a second is %d thousandths of a request, want %d", grants, got, want)
		}
	}
}

// TestMeterForgets: what share of the grants is reported is that of late.
func TestMeterForgets(t *testing.T) {
	var m meter
	m.start(0)
	now := int64(0)
	for i := range 40 * meterForget {
		now += nsPerMs
		m.count(now, granted)
		if i < 20*meterForget && i%10 > 0 {
			continue
		}
		m.count(now, reported)
	}
	if got := m.perGrant(1000, now, 0); got < 950 || got > 1050 {
		t.Errorf("after very many grants that are all reported: 1 report a second is %d thousandths of a request", got)
	}
	for what, n := range m.old {
		if n > meterForget+meterSlots<<meterBits/nsPerMs {
			t.Errorf("%d events of kind %d are remembered", n, what)
		}
	}
}

// TestPacerCountsFromItsFirst question on, however long the clock has run before.
func TestPacerCountsFromItsFirst(t *testing.T) {
	c := testConfig()
	c.Pacing = true
	r := newRig(t, c)
	r.now.Mono = 1000 * meterSlot
	w := watch{"service", 10_000, 32, 1}
	r.report(w.took(5))
	for range 20 {
		r.guard(w.below(100))
		r.pass(10 * nsPerMs)
	}
	p := r.e.trackers.pacers.at(1)
	if got := p.meter.rate(r.now.Mono, asked); got < 95_000 || got > 105_000 {
		t.Errorf("100 questions a second for 200 ms are told as %d thousandths a second", got)
	}
}
