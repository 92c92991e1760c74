package sim

import (
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/policy"
)

// wild is a scenario in which everything goes on at once.
func wild() *Scenario {
	s := everything()
	s.Length = 3 * time.Second
	s.Clients[0].Count = 3
	s.Clients[0].Arrivals = Arrivals{Kind: ArrivePoisson, Every: ms(5)}
	s.Clients = append(s.Clients, Clients{
		Name: "loop", Arrivals: Arrivals{Kind: ArriveClosed, Size: 4, Think: Exponential(ms(20))}, Mix: s.Clients[0].Mix,
	})
	s.Buckets[0] = Bucket{Name: "b", Limit: 40, Window: ms(500), Count: 5, Zipf: 90}
	s.Servers = append(s.Servers, Server{Name: "C", Age: time.Second, Workers: 3, Steering: true, Queue: 40, Service: Exponential(us(700))})
	s.Links = []Link{{
		From: "*", To: "*", Delay: Lognormal(ms(1), ms(8)), Loss: 20_000, Duplicate: 20_000, Reorder: 30_000, Late: Uniform(0, ms(30)),
		Burst: Burst{Enter: 5000, Leave: 100_000, Loss: 700_000},
	}}
	s.DNS = DNS{TTL: time.Second, Delay: Uniform(ms(1), ms(9)), Propagation: Exponential(ms(300)), Join: ms(200)}
	s.Faults = []Fault{
		{Kind: FaultKill, At: ms(500), For: ms(400), Server: "A"},
		{Kind: FaultPause, At: ms(1200), For: ms(100), Server: "B"},
		{Kind: FaultSlow, At: ms(1300), For: ms(300), Server: "C", Dist: Exponential(ms(2))},
		{Kind: FaultPartition, At: ms(1500), For: ms(200), From: "web/1", To: "*", Both: true},
		{Kind: FaultClock, At: ms(1600), From: "loop", Step: -time.Second},
		{Kind: FaultResolver, At: ms(1700), For: ms(500)},
		{Kind: FaultWork, At: ms(2000), For: ms(300), Service: "db", Dist: Uniform(0, ms(20))},
		{Kind: FaultForget, At: ms(2200), Server: "B"},
		{Kind: FaultDelay, At: ms(2300), For: ms(200), From: "C", To: "*", Dist: Constant(ms(15))},
	}
	return s
}

func digestOf(t testing.TB, s *Scenario, seed uint64) string {
	t.Helper()
	d := NewDigest()
	if _, err := Run(s, seed, both{d, newConservation(t, s)}); err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// TestSameSeed: the same scenario and seed give the same log, byte for byte, and the same digest;
// another seed gives others.
func TestSameSeed(t *testing.T) {
	s := wild()
	if a, b := logOf(t, s, 1), logOf(t, s, 1); a != b {
		t.Error("two runs with one seed differ")
	}
	one := digestOf(t, s, 1)
	if again := digestOf(t, s, 1); again != one {
		t.Error("two digests with one seed differ")
	}
	if digestOf(t, s, 2) == one {
		t.Error("two seeds give the same run")
	}
}

// fates tells what became of the first datagram of each request to each server: when it was sent,
// and how long it took or why it was lost.
func fates(t tape, client int) map[[3]uint64]string {
	fate := map[[3]uint64]string{}
	sent := map[[2]uint64]time.Duration{}
	ordinals := map[uint64]uint64{} // of the client: the run's numbers shift
	for i := range t {
		r := &t[i]
		if r.Kind == RecordSubmit && r.Client == client {
			ordinals[r.Request] = uint64(len(ordinals))
		}
		ordinal, ours := ordinals[r.Request]
		if !ours || r.Send != core.SendFirst {
			continue
		}
		k := [3]uint64{ordinal, uint64(r.Server), uint64(r.Copy)}
		switch {
		case r.Kind == RecordSend:
			sent[[2]uint64{ordinal, uint64(r.Server)}] = r.At
		case r.Kind == RecordLost && !r.Answer:
			fate[k] = sent[[2]uint64{ordinal, uint64(r.Server)}].String() + " " + r.Cause.String()
		case r.Kind == RecordArrive:
			at := sent[[2]uint64{ordinal, uint64(r.Server)}]
			fate[k] = at.String() + " " + (r.At - at).String()
		}
	}
	return fate
}

// TestStreamsAreIndependent: what one part of a scenario draws shifts nothing for the others. So
// under another policy, which sends other datagrams, every first one fares as before, and a client
// does the same whoever else is there.
func TestStreamsAreIndependent(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Clients[0].Count = 2
		s.Clients[0].Arrivals = Arrivals{Kind: ArrivePoisson, Every: ms(3)}
		s.Servers[0].Service = Exponential(us(100))
		s.Links[0] = Link{From: "*", To: "*", Delay: Lognormal(ms(5), ms(40)), Loss: 50_000, Duplicate: 50_000, Reorder: 50_000, Late: Constant(ms(3))}
	})
	want := fates(play(t, s, 1), 1)
	if len(want) < 500 {
		t.Fatalf("only %d datagrams", len(want))
	}
	compare := func(what string, got map[[3]uint64]string) {
		t.Helper()
		for k, fate := range want {
			if got[k] != fate {
				t.Fatalf("%s: datagram %v: %q, not %q", what, k, got[k], fate)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d datagrams, not %d", what, len(got), len(want))
		}
	}
	s.Policy = policy.FastestValid()
	other := play(t, s, 1)
	compare("another policy", fates(other, 1))
	s.Clients[0].Count = 4
	compare("more clients", fates(play(t, s, 1), 1))
	s.Servers = append(s.Servers, Server{Name: "C", Age: time.Second})
	more := fates(play(t, s, 1), 1)
	for k := range more {
		if k[1] == 2 {
			delete(more, k)
		}
	}
	compare("another server", more)
}
