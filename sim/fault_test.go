package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
)

// within tells whether a record is of a time.
func within(r *Record, from, to int) bool { return r.At >= ms(from) && r.At < ms(to) }

// TestPartition cuts one direction, or both, for a while.
func TestPartition(t *testing.T) {
	for _, c := range []struct {
		from, to     string
		both         bool
		up, down     bool
		otherIsTouch bool
	}{
		{"web", "A", false, true, false, false},
		{"A", "web", false, false, true, false},
		{"web", "A", true, true, true, false},
		{"*", "*", false, true, true, true},
	} {
		s := small(func(s *Scenario) {
			dense(s, 1000)
			s.Faults = []Fault{{Kind: FaultPartition, At: ms(200), For: ms(300), From: c.from, To: c.to, Both: c.both}}
		})
		got := play(t, s, 1)
		lost := func(answer bool, server int) int {
			return got.count(RecordLost, func(r *Record) bool {
				if r.Cause != LostPartition || !within(r, 200, 500) {
					t.Fatalf("lost at %v by %v", r.At, r.Cause)
				}
				return r.Answer == answer && r.Server == server
			})
		}
		for server := range 2 {
			cut := server == 0 || c.otherIsTouch
			if n := lost(false, server); n > 0 != (c.up && cut) {
				t.Errorf("%+v: %d requests to server %d were lost", c, n, server)
			}
			// Also in a partition both ways: an answer to what had come before.
			if n := lost(true, server); n > 0 != (c.down && cut) {
				t.Errorf("%+v: %d answers of server %d were lost", c, n, server)
			}
		}
		through := got.count(RecordArrive, func(r *Record) bool { return r.Server == 0 && within(r, 201, 500) })
		if c.up && through > 0 {
			t.Errorf("%+v: %d arrive through the partition", c, through)
		}
	}
}

// TestLinkFaults: loss and delay besides those of the link, while they last.
func TestLinkFaults(t *testing.T) {
	s := small(func(s *Scenario) {
		dense(s, 6000)
		s.Policy = oneRound()
		s.Faults = []Fault{
			{Kind: FaultLoss, At: ms(1000), For: ms(2000), From: "web", To: "A", Chance: 250_000},
			{Kind: FaultDelay, At: ms(2000), For: ms(2000), From: "B", To: "web", Dist: Constant(ms(7))},
		}
	})
	got := play(t, s, 1)
	if lost := got.count(RecordLost, func(r *Record) bool { return r.Cause == LostLink && r.Server == 0 && within(r, 1000, 3000) }); !near(lost, 2000, 0.25) {
		t.Errorf("%d of 2000 were lost, not a quarter", lost)
	}
	slow := 0
	served := map[uint64]*Record{}
	for i := range got {
		r := &got[i]
		switch {
		case r.Kind == RecordServe && r.Server == 1:
			served[r.Request] = r
		case r.Kind == RecordResponse && r.Server == 1:
			took, began := r.At-served[r.Request].At, served[r.Request].At
			if want := began >= ms(2000) && began < ms(4000); want != (took == ms(8)) || !want && took != ms(1) {
				t.Fatalf("an answer sent at %v took %v", began, took)
			}
			if took == ms(8) {
				slow++
			}
		}
	}
	if slow != 2000 {
		t.Errorf("%d answers were slow", slow)
	}
}

// TestPause: nothing is served meanwhile, queues fill up to their room, and what has waited for
// longer than its TTL is dropped.
func TestPause(t *testing.T) {
	s := small(func(s *Scenario) {
		dense(s, 1000)
		s.Policy = oneRound() // a horizon of 40 ms
		s.Servers[0].Queue = 90
		s.Servers[0].Service = Constant(us(100))
		s.Faults = []Fault{{Kind: FaultPause, At: ms(200), For: ms(100), Server: "A"}}
	})
	got := play(t, s, 1)
	if n := got.count(RecordServe, func(r *Record) bool { return r.Server == 0 && within(r, 200, 300) }); n > 0 {
		t.Errorf("%d were served in the pause", n)
	}
	full := got.count(RecordLost, func(r *Record) bool { return r.Cause == LostQueue && r.Server == 0 })
	if full < 9 || full > 11 {
		t.Errorf("of 100 datagrams %d found no room in a queue of 90", full)
	}
	late := got.count(RecordServe, func(r *Record) bool { return r.Late })
	// The k-th came k ms into the pause and is taken k * 100 us behind it: 41 whole ms have passed
	// up to k = 65.
	if late < 64 || late > 66 {
		t.Errorf("%d were late", late)
	}
	for _, r := range got.of(RecordServe) {
		if r.Late && r.Verdict != 0 {
			t.Errorf("%v: a late one is %v", r.At, r.Verdict)
		}
	}
	if n := got.count(RecordDecide, func(r *Record) bool { return !r.Granted }); n > 0 {
		t.Errorf("%d requests were not granted although B was well", n)
	}
}

// TestPauseMidway: what is in the middle of its service goes on where it was, also if two pauses
// overlap.
func TestPauseMidway(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Clients[0].Arrivals = Arrivals{Kind: ArriveTrace, Times: []time.Duration{ms(100), ms(200)}}
		s.Servers = s.Servers[:1]
		s.Servers[0].Service = Constant(ms(10))
		s.Faults = []Fault{
			{Kind: FaultPause, At: ms(104), For: ms(5), Server: "A"},
			{Kind: FaultPause, At: ms(107), For: ms(5), Server: "A"},
			{Kind: FaultPause, At: ms(204), For: ms(1), Server: "A"},
			{Kind: FaultKill, At: ms(207), For: ms(1), Server: "A"},
			{Kind: FaultPartition, At: ms(208), From: "*", To: "A"},
		}
	})
	got := play(t, s, 1).of(RecordServe)
	if len(got) != 1 || got[0].At != ms(119) {
		t.Errorf("served %d, the first at %v", len(got), got[0].At)
	}
}

// TestPauseForGood: a run ends although datagrams wait for ever, and they die with their server.
func TestPauseForGood(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Servers[0].Service = Constant(ms(3))
		s.Faults = []Fault{{Kind: FaultPause, At: ms(502), Server: "A"}}
	})
	got := play(t, s, 1)
	if n := got.count(RecordLost, func(r *Record) bool { return r.Cause == LostKilled && r.Server == 0 }); n != 100 {
		t.Errorf("%d wait at A, not 50 first ones, less one, and as many deliveries and one in hand", n)
	}
}

// TestSlow makes the service time longer, while it lasts.
func TestSlow(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Policy = oneRound()
		s.Servers[0].Service = Constant(us(100))
		s.Faults = []Fault{{Kind: FaultSlow, At: ms(200), For: ms(300), Server: "A", Dist: Constant(ms(3))}}
	})
	arrived := map[uint64]*Record{}
	got := play(t, s, 1)
	for i := range got {
		r := &got[i]
		switch {
		case r.Kind == RecordArrive && r.Server == 0:
			arrived[r.Request] = r
		case r.Kind == RecordServe && r.Server == 0:
			want := us(100)
			if a := arrived[r.Request]; within(a, 200, 500) {
				want = us(3100)
			}
			if took := r.At - arrived[r.Request].At; took != want {
				t.Errorf("%v: served after %v, not %v", r.At, took, want)
			}
		}
	}
}

// TestKill: what waits dies, what comes finds nobody, and the server that starts again has a
// younger ID and no state.
func TestKill(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Length = 6 * s.Length
		s.Buckets[0].Limit, s.Buckets[0].Window = 1, 100*s.Length // what was taken is never given back
		s.Servers[0].Service = Constant(ms(2))
		s.Faults = []Fault{{Kind: FaultKill, At: ms(502), For: ms(200), Server: "A"}}
	})
	got := play(t, s, 1)
	var starts []Record
	for _, r := range got.of(RecordServer) {
		if r.Server == 0 {
			starts = append(starts, r)
		}
	}
	if len(starts) != 4 || starts[1].At != ms(502) || starts[1].Up || starts[2].At != ms(702) || !starts[2].Up {
		t.Fatalf("A starts and ends %d times: %+v", len(starts), starts)
	}
	if b := got.of(RecordServer)[1]; starts[2].ID.Older(b.ID) || starts[0].ID == starts[2].ID {
		t.Errorf("A was %d and is %d, B is %d", starts[0].ID, starts[2].ID, b.ID)
	}
	if starts[1].Engine.Buckets != 1 || starts[1].Engine.Identities == 0 {
		t.Errorf("A ended with %+v", *starts[1].Engine)
	}
	if n := got.count(RecordLost, func(r *Record) bool { return r.Cause == LostKilled && r.At == ms(502) }); n != 1 {
		t.Errorf("%d died with A", n)
	}
	for _, r := range got.of(RecordLost) {
		if r.Cause == LostDead && (r.Server != 0 || !within(&r, 502, 702)) {
			t.Errorf("%v: lost for want of server %d", r.At, r.Server)
		}
	}
	granted := got.count(RecordServe, func(r *Record) bool { return r.Server == 0 && r.Verdict == limiter.Granted })
	if granted != 2 {
		t.Errorf("A granted %d times, not once in each of two lives", granted)
	}
	// As long as it is not looked up anew, its answers are those of a stranger.
	if n := got.count(RecordResponse, func(r *Record) bool { return r.Received == core.DatagramStranger && r.At > ms(702) }); n == 0 {
		t.Error("nobody took the younger A for a stranger")
	}
	members := got.of(RecordMembership)
	if last := members[len(members)-1].Servers; len(last) != 2 || last[1].ID != starts[2].ID {
		t.Errorf("in the end web knows %v, not B and the younger A", last)
	}
}

// TestKilledTwice: a server stays down as long as anything keeps it down.
func TestKilledTwice(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Faults = []Fault{
			{Kind: FaultKill, At: ms(100), For: ms(100), Server: "A"},
			{Kind: FaultKill, At: ms(150), For: ms(200), Server: "A"},
		}
	})
	var at []time.Duration
	for _, r := range play(t, s, 1).of(RecordServer) {
		if r.Server == 0 {
			at = append(at, r.At)
		}
	}
	if want := []time.Duration{0, ms(100), ms(350)}; len(at) != 4 || !slices.Equal(at[:3], want) {
		t.Errorf("A starts and ends at %v, not %v", at, want)
	}
}

// TestForget: a server that loses its state executes what it had executed, and keeps its ID.
func TestForget(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Clients[0].Arrivals = Arrivals{Kind: ArriveTrace, Times: []time.Duration{0}}
		s.Links = []Link{{From: "A", To: "*", Delay: Constant(ms(30))}, {From: "B", To: "*", Loss: million}}
		s.Faults = []Fault{{Kind: FaultForget, At: ms(10), Server: "A"}}
	})
	got := play(t, s, 1)
	var verdicts []string
	for _, r := range got.of(RecordServe) {
		if r.Server == 0 {
			verdicts = append(verdicts, r.Verdict.String())
		}
	}
	if v := strings.Join(verdicts, " "); v != "granted granted" {
		t.Errorf("A said %s to a request and its replay", v)
	}
}

// TestClock: clocks that are off by more than servers allow make them drop everything, and
// nothing else changes.
func TestClock(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Faults = []Fault{
			{Kind: FaultClock, At: ms(200), For: ms(200), Server: "A", Step: 6 * s.Length},
			{Kind: FaultClock, At: ms(600), For: ms(200), From: "web", Step: -6 * s.Length},
		}
	})
	got := play(t, s, 1)
	made := map[uint64]time.Duration{}
	for _, r := range got.of(RecordSubmit) {
		made[r.Request] = r.At
	}
	for _, r := range got.of(RecordServe) {
		at := made[r.Request] // which is what replays are stamped with
		bad := r.Server == 0 && within(&r, 200, 400) || at >= ms(600) && at < ms(800)
		if bad != (r.Verdict == limiter.DropStale) {
			t.Errorf("%v: server %d says %v", r.At, r.Server, r.Verdict)
		}
	}
	if out := got.outcomes(); out[core.TimedOut] != 20 {
		t.Errorf("%d requests time out, not those of 200 ms", out[core.TimedOut])
	}
}

// TestFaultsAlike: of faults that are written alike each has its own chance.
func TestFaultsAlike(t *testing.T) {
	loss := Fault{Kind: FaultLoss, From: "web", To: "B", Chance: million / 2}
	late := Fault{Kind: FaultDelay, From: "web", To: "A", Dist: Uniform(0, ms(10))}
	s := small(func(s *Scenario) {
		dense(s, 2000)
		s.Faults = []Fault{loss, late, loss, late}
	})
	got := play(t, s, 1)
	lost := got.count(RecordLost, func(r *Record) bool { return r.Server == 1 && !r.Answer && r.Send == core.SendFirst })
	if lost < 1400 || lost > 1600 { // three quarters, give or take five deviations
		t.Errorf("%d of 2000 are lost to two chances of a half", lost)
	}
	made, middle := map[uint64]time.Duration{}, 0
	for _, r := range got {
		switch {
		case r.Kind == RecordSubmit:
			made[r.Request] = r.At
		case r.Kind == RecordArrive && r.Server == 0 && r.Send == core.SendFirst:
			if took := r.At - made[r.Request]; took >= ms(6) && took < ms(16) { // 1 ms of the link's
				middle++
			}
		}
	}
	if middle < 1400 || middle > 1600 {
		t.Errorf("the sum of two uniform delays is in its middle half for %d of 2000", middle)
	}
}
