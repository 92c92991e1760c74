package sim

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
)

// TestMeasureOverlap has two faults begin at once while another lasts: its wake ends there although
// it goes on, those that begin together have one wake, and disagreement is looked for after the end
// of each.
func TestMeasureOverlap(t *testing.T) {
	undecided := []uint64{0, 1, 0, 2, 0, 3, 0, 0, 0, 0} // of ten in each second
	p := newScript(t, scriptScenario(), MeasureOptions{Bin: time.Second})
	number := uint64(0)
	for bin, lost := range undecided {
		second := time.Duration(1000 * bin)
		switch bin {
		case 1:
			p.fault(second, 0, true)
		case 3:
			p.fault(second, 1, true)
			p.fault(second, 2, true) // for good
		case 4:
			p.fault(second, 1, false)
		case 6:
			p.fault(second, 0, false)
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
	second := time.Second
	want := []FaultEffect{
		{
			Fault: 0, Begin: second, End: 6 * second, Lowest: 900_000, Submitted: 10, Lost: 1, Recovery: second, Recovered: true,
			Watched: 4 * second,
		},
		{
			Fault: 1, Begin: 3 * second, End: 4 * second, Lowest: 700_000, Submitted: 30, Lost: 5, Recovery: 3 * second, Recovered: true,
			Watched: 6 * second,
		},
		{
			Fault: 2, Begin: 3 * second, End: 10 * second, Lowest: 700_000, Submitted: 30, Lost: 5, Recovery: 3 * second, Recovered: true,
			Watched: 7 * second,
		},
	}
	for i, w := range want {
		if m.Faults[i] != w {
			t.Errorf("fault %d: %+v, want %+v", i, m.Faults[i], w)
		}
	}
}

// TestOverlap holds what faults of one kind come to together: delays add up, and of two lists of
// members the one that began last counts, then the other again.
func TestOverlap(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Length = 10 * time.Second
		s.Clients[0].Arrivals.Every = ms(50)
		s.Links[0].Delay = Constant(ms(1))
		s.DNS = DNS{TTL: time.Second}
		s.Faults = []Fault{
			{Kind: FaultDelay, At: ms(2500), For: ms(400), From: "*", To: "A", Dist: Constant(ms(2))},
			{Kind: FaultDelay, At: ms(2700), For: ms(400), From: "*", To: "A", Dist: Constant(ms(3))},
			{Kind: FaultMembers, At: ms(4000), For: ms(4500), Members: []string{"A"}},
			{Kind: FaultMembers, At: ms(5500), For: ms(1500), Members: []string{"B"}},
		}
	})
	got := play(t, s, 1)
	// Who is known, by their numbers, after each change from 4 s on.
	var known [][]ident.ServerID
	var ids [2]ident.ServerID
	for _, r := range got {
		switch {
		case r.Kind == RecordServer && r.Up:
			ids[r.Server] = r.ID
		case r.Kind == RecordMembership && r.At > ms(4000):
			var members []ident.ServerID
			for _, m := range r.Servers {
				members = append(members, m.ID)
			}
			known = append(known, members)
		}
	}
	a, b := ids[:1], ids[1:]
	if want := [][]ident.ServerID{a, b, a, ids[:]}; !reflect.DeepEqual(known, want) {
		t.Errorf("the members are %v, want %v", known, want)
	}
	sent := map[uint64]time.Duration{}
	for i := range got {
		r := &got[i]
		switch {
		case r.Kind == RecordSend && r.Server == 0 && sent[r.Request] == 0:
			sent[r.Request] = r.At
		case r.Kind == RecordArrive && r.Server == 0 && sent[r.Request] > 0:
			want := ms(1)
			if at := sent[r.Request]; at >= ms(2500) && at < ms(2900) {
				want += ms(2)
			}
			if at := sent[r.Request]; at >= ms(2700) && at < ms(3100) {
				want += ms(3)
			}
			if took := r.At - sent[r.Request]; took != want {
				t.Errorf("what is sent at %v takes %v, not %v", sent[r.Request], took, want)
			}
			sent[r.Request] = -1
		}
	}
}
