package server

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// counted makes flows whose datagrams were counted at a time: so many of each mark.
func countedFlows(now int64, loads map[uint64]int) *flows {
	f := newFlows()
	f.count(now)
	for mark, n := range loads {
		for range n {
			f.answer(now, mark)
		}
	}
	return f
}

// Chosen are flows that are together at most the excess, by chance, and each as soon as
// any other.
func TestChoiceOfFlows(t *testing.T) {
	const flows, load, excess = 40, 10, 105
	random := rand.New(rand.NewPCG(1, 1))
	times := make(map[uint64]int)
	for range 400 {
		loads := map[uint64]int{1000: excess + 1, 1001: 2 * excess}
		for i := range uint64(flows) {
			loads[i+1] = load
		}
		f := countedFlows(0, loads)
		if n := f.seen(); n != flows+2 {
			t.Fatalf("%d flows are seen", n)
		}
		if n := f.ask(0, excess, random); n != excess/load {
			t.Fatalf("%d are chosen", n)
		}
		chosen := 0
		for mark := range loads {
			if f.answer(0, mark) == changePort {
				times[mark]++
				chosen++
			}
		}
		if chosen != excess/load || f.asked.Load() != uint64(chosen) {
			t.Fatalf("%d of %d are asked, %d counted", chosen, excess/load, f.asked.Load())
		}
	}
	for mark := range uint64(flows) {
		if n := times[mark+1]; n < 60 || n > 145 { // 100 on average, 9 off is usual
			t.Errorf("flow %d is chosen %d times", mark, n)
		}
	}
	if len(times) != flows {
		t.Errorf("%d flows are chosen at times; two are larger than the excess", len(times))
	}
	// Those that are left alone are chosen in nobody's place.
	f := countedFlows(0, map[uint64]int{1: 1, 2: 1, 3: 1})
	f.ask(0, 10, random)
	for mark := range uint64(3) {
		f.answer(0, mark+1)
	}
	f.count(1)
	for mark := range uint64(6) {
		f.answer(1, mark+1)
	}
	if n := f.ask(1, 3, random); n != 3 || f.answer(1, 4)+f.answer(1, 5)+f.answer(1, 6) != 3*changePort {
		t.Errorf("%d are chosen, and not those three that may be asked", n)
	}
}

// A flow that stays is asked at most once a second, and left alone for longer and longer;
// one that was gone for long is a new one.
func TestFlowIsLeftAloneForLonger(t *testing.T) {
	const seconds = int64(time.Second)
	f := newFlows()
	random := rand.New(rand.NewPCG(1, 1))
	round := func(now int64, sends bool) (asked bool) {
		f.count(now)
		if sends {
			f.answer(now, 7)
		}
		f.ask(now, 10, random)
		asked = f.answer(now, 7) == changePort
		if asked && f.answer(now, 7) == changePort {
			t.Fatal("asked twice at once")
		}
		return asked
	}
	var times []int64
	for now := int64(0); now < 400*seconds; now += seconds / 10 {
		if round(now, true) {
			times = append(times, now)
		}
	}
	want := []int64{0, 1, 2, 3, 5, 9, 17, 33, 65, 129, 193, 257, 321, 385}
	for i := range max(len(times), len(want)) {
		if i >= len(times) || i >= len(want) || times[i] != want[i]*seconds {
			t.Fatalf("asked at %v ns, want %v s", times, want)
		}
	}
	round(386*seconds, false)
	round(387*seconds, false)
	if round(388*seconds, true) {
		t.Error("one that was silent for a moment is asked again")
	}
	if round(449*seconds, false); f.find(7) != nil && f.find(7).load > 0 {
		t.Fatal("it is seen without sending")
	}
	round(450*seconds, false)
	if f.find(7) != nil {
		t.Error("it is remembered when it is gone")
	}
	for i := range int64(3) {
		if !round((451+i)*seconds, true) {
			t.Error("one that comes again is not asked as a new one is")
		}
	}
}

// Only flows that have their answers are known, and their reports count for them.
func TestReportsCountForKnownFlows(t *testing.T) {
	f := newFlows()
	known, unknown := netip.MustParseAddrPort("192.0.2.1:50000"), netip.MustParseAddrPort("192.0.2.1:50001")
	f.reported(known)
	f.count(0)
	f.reported(unknown)
	f.feedback(0, known)
	f.reported(known)
	f.reported(known)
	if e := f.find(f.mark(known)); e == nil || e.load != 3 || f.seen() != 1 {
		t.Errorf("%d flows, the one with a request has %+v", f.seen(), e)
	}
	f.ask(0, 10, rand.New(rand.NewPCG(1, 1)))
	f.reported(known)
	if e := f.find(f.mark(known)); e.load != 3 {
		t.Errorf("counted while nothing is counted: %+v", e)
	}
}

// Every part of the address and the port makes another flow, and who does not know the
// seed cannot tell which share a place.
func TestMarks(t *testing.T) {
	f, other := newFlows(), newFlows()
	seen := make(map[uint64]string)
	for _, text := range []string{
		"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:257", "192.0.2.2:1", "192.1.2.1:1", "[2001:db8::1]:1", "[2001:db8:1::1]:1", "[::1]:1",
	} {
		p := netip.MustParseAddrPort(text)
		mark := f.mark(p)
		if mark != f.mark(p) || mark == other.mark(p) {
			t.Errorf("%s: the same seed does not give the same mark, or another gives it", text)
		}
		if was, ok := seen[mark]; ok {
			t.Errorf("%s and %s are one flow", text, was)
		}
		seen[mark] = text
	}
}

// However many flows there are, a worker knows so many at most; where there is no room, one
// that was asked a moment ago stays, and one that was asked before is forgotten for another.
func TestFlowsAreBounded(t *testing.T) {
	f := newFlows()
	random := rand.New(rand.NewPCG(1, 1))
	inSet := func(i int) uint64 { return uint64(1 + i*flowSets) } // all of one set
	f.count(0)
	for i := range flowWays {
		f.answer(0, inSet(i))
	}
	f.ask(0, flowWays, random)
	for i := range flowWays {
		if f.answer(0, inSet(i)) != changePort {
			t.Fatalf("flow %d is not asked", i)
		}
	}
	soon, later := int64(askEvery)-1, int64(askEvery)
	f.count(soon)
	f.answer(soon, inSet(100))
	if f.seen() != 0 || f.find(inSet(100)) != nil {
		t.Error("a flow has the place of one that was just asked")
	}
	f.answer(later, inSet(0))
	f.answer(later, inSet(100))
	if f.seen() != 2 || f.find(inSet(100)) == nil || f.find(inSet(0)).tries != 1 {
		t.Errorf("%d flows are seen", f.seen())
	}
	for i := range flowWays {
		f.answer(later, inSet(i+1)) // the last two find no place
	}
	for _, i := range []int{0, 100, 1, 2, 3, 4, 5, 6} {
		if e := f.find(inSet(i)); e == nil || e.load == 0 {
			t.Errorf("flow %d has lost its place to one that came later", i)
		}
	}
	for range 20 * flowSets * flowWays {
		f.answer(later, random.Uint64())
	}
	if n := f.seen(); n < flowSets*flowWays*9/10 || n > flowSets*flowWays {
		t.Errorf("%d flows are known", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		f.count(later)
		f.answer(later, random.Uint64())
		f.seen()
		f.ask(later, 10, random)
		f.rest()
	}); n != 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

// A worker that does not steer, and one that has no duty, keep everybody.
func TestNoDuty(t *testing.T) {
	var none *flows
	none.reported(peer)
	if none.feedback(0, peer) != keepPort {
		t.Error("asked without steering")
	}
	f := countedFlows(0, nil)
	f.feedback(0, peer)
	f.ask(0, 10, rand.New(rand.NewPCG(1, 1)))
	f.rest()
	if f.feedback(0, peer) != keepPort {
		t.Error("asked without a duty")
	}
}

// BenchmarkFeedback is what steering adds to each answer.
func BenchmarkFeedback(b *testing.B) {
	for _, duty := range []struct {
		name  string
		flows func() *flows
	}{
		{"without", func() *flows { return nil }},
		{"none", newFlows},
		{"count", func() *flows { return countedFlows(0, nil) }},
		{"ask", func() *flows {
			f := countedFlows(0, nil)
			for i := range 1000 {
				f.feedback(0, netip.AddrPortFrom(peer.Addr(), uint16(i+1)))
			}
			f.ask(0, 100, rand.New(rand.NewPCG(1, 1)))
			return f
		}},
	} {
		b.Run(duty.name, func(b *testing.B) {
			f := duty.flows()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.feedback(int64(i), netip.AddrPortFrom(peer.Addr(), uint16(i%1000+1)))
			}
		})
	}
}
