package simtune

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
)

// A Network is what policies are tuned for.
type Network struct {
	RTT        sim.Dist       // of round trips, as a client sees them
	Loss       sim.PerMillion // of each datagram, each way
	Servers    int            // 2 to 9; A is the oldest
	MaxHorizon time.Duration  // of policies that are tried; from the default's to 2 s
}

// Scenarios are what candidates are played over.
type Scenarios struct {
	All     []*sim.Scenario
	Weights []int
}

const (
	length   = 3 * time.Second
	begins   = 750 * time.Millisecond // of each fault
	lasts    = 750 * time.Millisecond // so that it is a quarter of the run
	stall    = 25 * time.Millisecond
	perfects = 1 << 14 // quantiles that a distribution is split into
)

// NewScenarios returns the scenarios over a network, or says why no policy can be tuned for it.
func NewScenarios(n Network) (*Scenarios, error) {
	if err := n.RTT.Validate(); err != nil {
		return nil, err
	}
	typical := n.RTT.At(1 << 63)
	base, err := policy.Default().Compile() // with which all are compared
	if err != nil {
		return nil, err
	}
	switch {
	case n.Servers < 2 || n.Servers > 9:
		return nil, fmt.Errorf("%d servers: give 2 to 9", n.Servers)
	case n.MaxHorizon < base.Horizon() || n.MaxHorizon > 2*time.Second || n.MaxHorizon%(10*time.Millisecond) != 0:
		return nil, fmt.Errorf("a horizon of %v: give %v, which the default has, with which all are compared, to 2s in steps of 10 ms, as a key's quota has it", n.MaxHorizon, base.Horizon())
	case n.Loss > 500_000:
		return nil, fmt.Errorf("a loss of %g %%: give at most 50%%", float64(n.Loss)/1e4)
	case typical >= n.MaxHorizon:
		return nil, fmt.Errorf("half of the round trips take %v or more, and no decision can come within a horizon of %v", typical, n.MaxHorizon)
	}
	// 99 % of the round trips are shorter than this.
	long := n.RTT.At(math.MaxUint64 / 100 * 99)
	extra := sim.Exponential(max(2*time.Millisecond, long))
	there, back := oneWay(n.RTT)
	s := &Scenarios{}
	add := func(name, purpose string, weight int, faults ...sim.Fault) {
		for i := range faults {
			faults[i].At, faults[i].For = begins, lasts
		}
		s.All = append(s.All, n.scenario(there, back, name, purpose, faults))
		s.Weights = append(s.Weights, weight)
	}
	add("health", "Nothing goes wrong but what the network loses.", 5)
	add("killed", "The oldest server dies, and 750 ms later is back as the youngest.", 1,
		sim.Fault{Kind: sim.FaultKill, Server: "A"})
	add("slow", "The oldest server's datagrams are late, by as much as a long round trip on average.", 1,
		sim.Fault{Kind: sim.FaultDelay, From: "A", To: "*", Both: true, Dist: extra})
	add("split", "Two of five clients cannot reach the oldest server.", 1,
		sim.Fault{Kind: sim.FaultPartition, From: "cut", To: "A", Both: true})
	add("lossy", "One in ten datagrams is lost, besides.", 1,
		sim.Fault{Kind: sim.FaultLoss, From: "*", To: "*", Both: true, Chance: 100_000})
	s.All = append(s.All, n.scenario(there, back, "stalled", "Five times all servers stand still for 25 ms, as on a host or in a network that does.", n.stalls()))
	s.Weights = append(s.Weights, 1)
	for _, scenario := range s.All {
		if err := scenario.Validate(); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", scenario.Name, err)
		}
	}
	return s, nil
}

// stalls pause all servers together. A pause is of the size of what schedulers, collectors and switches
// do to everybody, and a policy whose horizon is shorter has no decision then.
func (n *Network) stalls() []sim.Fault {
	var all []sim.Fault
	for i := range 5 {
		for server := range n.Servers {
			all = append(all, sim.Fault{
				Kind: sim.FaultPause, At: begins + time.Duration(i)*200*time.Millisecond, For: stall, Server: serverName(server),
			})
		}
	}
	return all
}

func serverName(i int) string { return string(rune('A' + i)) }

// Fits tells whether a policy is one that the scenarios' key allows.
func (s *Scenarios) Fits(p policy.Policy) bool { return under(s.All[0], p).Validate() == nil }

// Names are the scenarios' names.
func (s *Scenarios) Names() []string {
	var names []string
	for _, scenario := range s.All {
		names = append(names, scenario.Name)
	}
	return names
}

// Time is how much time one trial simulates.
func (s *Scenarios) Time() (sum time.Duration) {
	for _, scenario := range s.All {
		sum += scenario.Length
	}
	return sum
}

func under(s *sim.Scenario, p policy.Policy) *sim.Scenario {
	changed := *s
	changed.Policy = p
	return &changed
}

func (n *Network) scenario(there, back sim.Dist, name, purpose string, faults []sim.Fault) *sim.Scenario {
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = uint32(n.MaxHorizon / time.Millisecond)
	s := &sim.Scenario{
		Name: name, Purpose: purpose, Length: length, Policy: policy.Default(), Quotas: quotas,
		Buckets: []sim.Bucket{{Name: "shop", Limit: 200, Window: 500 * time.Millisecond}},
		Links: []sim.Link{
			{From: "*", To: "*", Both: true, Delay: there, Loss: n.Loss},
		},
		DNS:    sim.DNS{TTL: time.Second, Leave: 250 * time.Millisecond},
		Faults: faults,
	}
	for i := range n.Servers {
		name := serverName(i)
		s.Servers = append(s.Servers, sim.Server{Name: name, Age: time.Duration(n.Servers-i) * time.Hour})
		s.Links = append(s.Links, sim.Link{From: name, To: "*", Delay: back, Loss: n.Loss})
	}
	for _, group := range []struct {
		name  string
		count int
	}{{"web", 3}, {"cut", 2}} {
		s.Clients = append(s.Clients, sim.Clients{
			Name: group.name, Count: group.count,
			Arrivals: sim.Arrivals{Kind: sim.ArrivePoisson, Every: 10 * time.Millisecond},
			Mix:      []sim.Choice{{Take: []sim.Take{{Bucket: "shop", Tokens: 1}}}},
		})
	}
	return s
}

// oneWay splits round trips into the way there and the way back, so that a client sees exactly the
// round trips that were given: each way takes half of the shortest, and what a round trip takes
// beyond that is on the way there.
func oneWay(rtt sim.Dist) (there, back sim.Dist) {
	values := make([]time.Duration, perfects)
	for i := range values {
		values[i] = rtt.At(uint64(i)<<50 + 1<<49)
	}
	half := slices.Min(values) / 2
	for i := range values {
		values[i] -= half
	}
	return sim.Empirical(values, nil), sim.Constant(half)
}
