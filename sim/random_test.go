package sim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/policy"
)

// drawn makes a scenario out of what rapid draws.
type drawn struct{ *rapid.T }

func (d drawn) n(least, most int) int { return rapid.IntRange(least, most).Draw(d.T, "n") }

func (d drawn) chance() PerMillion {
	return PerMillion(rapid.SampledFrom([]int{0, 0, 1000, 100_000, million}).Draw(d.T, "chance"))
}

func (d drawn) ms(most int) time.Duration { return us(d.n(0, most*1000)) }

func (d drawn) dist() Dist {
	a, b := d.ms(10), d.ms(40)
	if a > b {
		a, b = b, a
	}
	all := []Dist{{}, Constant(a), Uniform(a, b), Exponential(b + 1), Lognormal(a+1, b+2), Empirical([]time.Duration{b, a, 0}, nil)}
	return rapid.SampledFrom(all).Draw(d.T, "dist")
}

func (d drawn) name(of ...string) string { return rapid.SampledFrom(of).Draw(d.T, "name") }

func (d drawn) scenario() *Scenario {
	preset, _ := policy.Preset(d.name(policy.PresetNames()...))
	s := &Scenario{
		Name: "random", Length: ms(d.n(1, 1500)), Policy: preset,
		Buckets:  []Bucket{{Name: "b", Limit: uint32(d.n(0, 100)), Window: ms(d.n(0, 300)), Count: d.n(0, 3), Zipf: uint32(d.n(0, 200))}},
		Trackers: []Tracker{{Name: "t", TTL: ms(d.n(1, 500)), MaxSamples: uint32(d.n(1, 64)), MinSamples: uint32(d.n(0, 5))}},
		Services: []Service{{Name: "db", Parallel: d.n(-1, 2), Time: d.dist(), Tracker: "t", Sample: d.n(-1, 3), Queue: d.n(0, 5)}},
		DNS:      DNS{TTL: ms(d.n(0, 3000)), Delay: d.dist(), Join: ms(d.n(-1, 500)), Leave: ms(d.n(-1, 500)), Propagation: d.dist()},
		Links:    []Link{d.link("*", "*"), d.link("web", "A"), d.link("A", "*")},
	}
	s.FailFast.Timeouts = d.n(0, 3)
	for i := range d.n(1, 3) {
		s.Servers = append(s.Servers, Server{
			Name: string(rune('A' + i)), Age: time.Duration(d.n(1, 100)) * time.Second, Workers: d.n(0, 3), Queue: d.n(0, 20),
			Service: d.dist(), Steering: true, Skew: ms(d.n(-200, 200)), Pacing: d.n(0, 1) == 1,
			Identities: d.n(0, 1) * 10, AnswerBytes: d.n(0, 1) * 2000,
		})
	}
	mix := []Choice{{Weight: uint32(d.n(0, 3)), Take: []Take{{"b", uint16(d.n(0, 5))}}}, {Guard: []Guard{{"t", ms(d.n(0, 30))}}, Work: "db"}}
	for i := range d.n(1, 2) {
		s.Clients = append(s.Clients, Clients{
			Name: []string{"web", "batch"}[i], Count: d.n(0, 3), Skew: ms(d.n(-200, 200)), Mix: mix, MaxInFlight: d.n(0, 5),
			Arrivals: Arrivals{
				Kind: ArrivalKind(d.n(1, int(ArriveTrace))), Every: ms(d.n(1, 100)), Start: d.ms(100), Stop: d.ms(900),
				Size: d.n(1, 5), Think: d.dist(), Times: []time.Duration{0, d.ms(1), ms(2)},
			},
		})
	}
	for range d.n(0, 6) {
		s.Faults = append(s.Faults, d.fault())
	}
	return s
}

func (d drawn) link(from, to string) Link {
	return Link{
		From: from, To: to, Both: d.n(0, 1) == 1, Delay: d.dist(), FIFO: d.n(0, 1) == 1, Loss: min(d.chance(), 500_000),
		Burst: Burst{d.chance(), d.chance(), d.chance()}, Duplicate: d.chance(), Reorder: d.chance(), Late: d.dist(),
	}
}

func (d drawn) fault() Fault {
	f := Fault{
		Kind: FaultKind(d.n(1, int(FaultWork))), At: d.ms(1500), For: d.ms(500), Server: "A", Service: "db",
		From: d.name("web", "*", "A"), To: "*", Both: d.n(0, 1) == 1, Chance: d.chance(), Dist: d.dist(), Step: ms(d.n(-3000, 3000)),
		Members: []string{"A"},
	}
	if f.Kind == FaultClock {
		f.Server, f.From = "", "web"
	}
	return f
}

// TestRandomScenarios holds random scenarios to conservation, and plays each twice.
func TestRandomScenarios(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawn{r}.scenario()
		if err := s.Validate(); err != nil {
			r.Fatal(err)
		}
		seed := rapid.Uint64().Draw(r, "seed")
		var digests [2]string
		for i := range digests {
			d := NewDigest()
			c := &conservation{t: r, s: s, up: make([]bool, len(s.Servers)), open: map[uint64]bool{}, working: map[uint64]bool{}}
			sum, err := Run(s, seed, both{d, c})
			if err != nil {
				r.Fatal(err)
			}
			c.finish()
			digests[i] = d.String() + fmt.Sprintf("%+v", sum)
		}
		if digests[0] != digests[1] {
			r.Fatal("two runs differ")
		}
	})
}
