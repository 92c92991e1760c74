package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// plan is a run that is drawn at random, with everything about it known at once.
type plan struct {
	warmup, length time.Duration // ms, like all times here
	requests       []planned
	faults         []plannedFault // in the order of their beginnings
}

type planned struct {
	submit, decided time.Duration
	outcome         core.Outcome
	server          int // that decided
	buckets         []uint16
	executed        [3]time.Duration // -1: never
	granted         [3]bool
}

type plannedFault struct {
	fault      int
	begin, end time.Duration // end -1: never
}

const planLimit = 4

func drawPlan(t *rapid.T) *plan {
	p := &plan{length: 2000, warmup: rapid.SampledFrom([]time.Duration{0, 300}).Draw(t, "warmup")}
	ms := func(lo, hi int, what string) time.Duration {
		return time.Duration(rapid.IntRange(lo, hi).Draw(t, what))
	}
	for range rapid.IntRange(1, 60).Draw(t, "requests") {
		// Rounded, so that much happens at once and at the ends of windows and bins.
		q := planned{submit: 10 * ms(0, 199, "submit"), outcome: core.TimedOut, decided: 60, server: -1}
		for range rapid.IntRange(0, 2).Draw(t, "blocks") {
			q.buckets = append(q.buckets, uint16(rapid.IntRange(0, 3).Draw(t, "tokens")))
		}
		for s := range q.executed {
			q.executed[s] = -1
			if rapid.IntRange(0, 3).Draw(t, "reached") > 0 {
				q.executed[s] = q.submit + 5*ms(0, 16, "executed")
				q.granted[s] = rapid.Bool().Draw(t, "granted")
			}
		}
		if s := rapid.IntRange(-1, 2).Draw(t, "decider"); s >= 0 && q.executed[s] >= 0 && q.executed[s] < q.submit+55 {
			q.server, q.outcome = s, core.Rejected
			if q.granted[s] {
				q.outcome = core.Granted
			}
			q.decided = q.executed[s] - q.submit + ms(0, int(q.submit+59-q.executed[s]), "answer")
		}
		q.decided += q.submit
		p.requests = append(p.requests, q)
	}
	slices.SortStableFunc(p.requests, func(a, b planned) int { return int(a.submit - b.submit) })
	begin := time.Duration(0)
	for i := range rapid.IntRange(0, 3).Draw(t, "faults") {
		begin += 10 * ms(0, 80, "begin")
		f := plannedFault{fault: i, begin: begin, end: -1}
		if i < 2 { // the third is for good
			f.end = begin + 10*ms(0, 80, "lasts")
		}
		p.faults = append(p.faults, f)
	}
	return p
}

func (p *plan) scenario() *Scenario {
	s := scriptScenario()
	s.Length, s.Warmup = p.length*at, p.warmup*at
	return s
}

// play has it measured.
func (p *plan) play(t *rapid.T) *Measures {
	type step struct {
		ms    time.Duration
		order int // at one instant
		do    func(*script)
	}
	var steps []step
	add := func(ms time.Duration, order int, do func(*script)) { steps = append(steps, step{ms, order, do}) }
	for i := range p.requests {
		q, number := &p.requests[i], uint64(i+1)
		add(q.submit, 1, func(p *script) {
			var takes []wire.Resource
			for n, tokens := range q.buckets {
				takes = append(takes, bucketOf(fmt.Sprint(n), planLimit, tokens))
			}
			p.ask(q.submit, number, takes...)
		})
		for s := range q.executed {
			if q.executed[s] >= 0 {
				v := limiter.Rejected
				if q.granted[s] {
					v = limiter.Granted
				}
				add(q.executed[s], 2, func(p *script) { p.serve(q.executed[s], number, s, v) })
			}
		}
		add(q.decided, 3, func(p *script) { p.decide(q.decided, number, q.server, q.outcome) })
	}
	for _, f := range p.faults {
		add(f.begin, 0, func(p *script) { p.fault(f.begin, f.fault, true) })
		if f.end >= 0 {
			add(f.end, 0, func(p *script) { p.fault(f.end, f.fault, false) })
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		if a.ms != b.ms {
			return int(a.ms - b.ms)
		}
		return a.order - b.order
	})
	script := newScript(t, p.scenario(), MeasureOptions{})
	for _, s := range steps {
		s.do(script)
	}
	return script.finish()
}

func (p *plan) measured(q *planned) bool { return q.submit >= p.warmup }

// over looks at every grant anew: which grants are in the window that ends with it, and how many of
// their tokens fit one after the other.
func (p *plan) over() OverLimit {
	type take struct {
		place  time.Duration
		number int
		tokens uint64
		held   uint64
	}
	var out OverLimit
	for bucket := range 2 {
		var takes []take
		for n := range p.requests {
			q := &p.requests[n]
			if q.outcome == core.Granted && len(q.buckets) > bucket && q.buckets[bucket] > 0 {
				takes = append(takes, take{q.executed[q.server], n, uint64(q.buckets[bucket]), 0})
			}
		}
		slices.SortStableFunc(takes, func(a, b take) int { return int(a.place - b.place) })
		for i := range takes {
			live, held := uint64(0), uint64(0)
			for _, o := range takes[:i] {
				if o.place+100 > takes[i].place {
					live += o.tokens
					held += o.held
				}
			}
			g := &takes[i]
			for g.held < g.tokens && held+g.held < planLimit {
				g.held++
			}
			if !p.measured(&p.requests[g.number]) {
				continue
			}
			out.Granted += g.tokens
			out.Excess += g.tokens - g.held
			if g.held < g.tokens {
				out.Grants++
			}
			if live+g.tokens > planLimit {
				out.WorstPPM = max(out.WorstPPM, (live+g.tokens-planLimit)*1_000_000/planLimit)
			}
		}
	}
	return out
}

// effects looks, for every fault, at every request.
func (p *plan) effects() []FaultEffect {
	var out []FaultEffect
	for i, f := range p.faults {
		next := func(after time.Duration) time.Duration {
			for _, o := range p.faults {
				if o.begin > after {
					return o.begin
				}
			}
			return -1
		}
		e := FaultEffect{Fault: f.fault, Begin: f.begin * at, End: p.length * at, Lowest: 1_000_000, Recovered: true}
		calm := f.begin
		if i < 2 {
			e.End, calm = min(f.end, p.length)*at, f.end
		}
		e.End = max(e.End, e.Begin)
		firstBin, lastBin := f.begin/100, p.length/100-1 // none if it begins after the last request
		if n := next(f.begin); n >= 0 && n < p.length {
			lastBin = max(firstBin, n/100-1)
		}
		for bin := firstBin; bin <= lastBin; bin++ {
			submitted, decided := p.availability(bin, bin)
			if submitted == 0 {
				continue
			}
			share := PerMillion(1_000_000 * decided / submitted)
			e.Lowest = min(e.Lowest, share)
			e.Recovered = share >= 999_000
			if !e.Recovered {
				e.Recovery = (100*(bin+1) - f.begin) * at
				all, well := p.availability(firstBin, bin)
				e.Submitted, e.Lost = all, all-well
			}
		}
		until := next(max(calm-1, f.begin)) // one that begins when this ends is the next
		if until < 0 || until > p.length {
			until = p.length
		}
		e.Watched = max(0, until-calm) * at
		for n := range p.requests {
			q := &p.requests[n]
			if p.measured(q) && q.submit >= calm && q.submit < until && p.disagree(q) {
				e.Disagreed++
				e.Convergence = (q.submit - calm) * at
			}
		}
		out = append(out, e)
	}
	return out
}

func (p *plan) availability(from, to time.Duration) (submitted, decided uint64) {
	for n := range p.requests {
		q := &p.requests[n]
		if bin := q.submit / 100; p.measured(q) && bin >= from && bin <= to {
			submitted++
			if q.outcome != core.TimedOut {
				decided++
			}
		}
	}
	return submitted, decided
}

func (p *plan) disagree(q *planned) bool {
	var yes, no bool
	for s := range q.executed {
		if q.executed[s] >= 0 {
			yes = yes || q.granted[s]
			no = no || !q.granted[s]
		}
	}
	return yes && no
}

// TestMeasuresAgainstNaive compares with what one finds who keeps everything and looks at all of it
// for every number.
func TestMeasuresAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		m := p.play(t)
		if want := p.over(); m.Over != want {
			t.Fatalf("over limits: %+v, want %+v", m.Over, want)
		}
		if want := p.effects(); !slices.Equal(m.Faults, want) {
			t.Fatalf("faults:\n%+v, want\n%+v", m.Faults, want)
		}
		for i := range m.Timeline.Bins {
			submitted, decided := p.availability(time.Duration(i), time.Duration(i))
			if b := m.Timeline.Bins[i]; b.Submitted != submitted || b.Decided != decided {
				t.Fatalf("bin %d: %+v, want %d of %d decided", i, b, decided, submitted)
			}
		}
		split := uint64(0)
		for n := range p.requests {
			if q := &p.requests[n]; p.measured(q) && p.disagree(q) {
				split++
			}
		}
		if m.Disagree.Disagreed != split {
			t.Fatalf("%d requests disagreed about, want %d", m.Disagree.Disagreed, split)
		}
	})
}

// TestMeasureExcessIsLeast tries out which of a few tokens can stay so that no window is over its
// limit.
func TestMeasureExcessIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 2
		places := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 10).Draw(t, "places")
		slices.Sort(places)
		most := 0
		for kept := range 1 << len(places) {
			n, fits := 0, true
			for i := range places {
				if kept>>i&1 == 0 {
					continue
				}
				n++
				live := 0
				for j := i; j >= 0 && places[j]+10 > places[i]; j-- {
					live += kept >> j & 1
				}
				fits = fits && live <= limit
			}
			if fits {
				most = max(most, n)
			}
		}
		p := newScript(t, scriptScenario(), MeasureOptions{})
		for i, place := range places {
			p.ask(time.Duration(10*place), uint64(i+1), bucketOf("b", limit, 1))
			p.grantAt(uint64(i+1), 0, time.Duration(10*place), time.Duration(10*place))
		}
		if got := p.finish().Over.Excess; got != uint64(len(places)-most) {
			t.Fatalf("%d tokens are too many of %v, want %d", got, places, len(places)-most)
		}
	})
}
