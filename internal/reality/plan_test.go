package reality

import (
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/relay"
	"github.com/weirhq/weir/sim"
)

// plan is a scenario as a stage plays it.
type plan struct {
	scenario *sim.Scenario
	submits  []submit
	ways     [][2]relay.Way // by server: up, down
	changes  []change       // in no order
}

// submit is a request, of the simulation's first seed: the real run makes the same.
type submit struct {
	At     time.Duration
	Client int // an index into the run's clients
	Asks   int // an index into order.Requests
}

// change is something that happens to the stage.
type change struct {
	at     time.Duration
	server int
	up     bool // the fault is over
	cut    [2]bool
	kill   bool
	listed *bool // in DNS from now on, or not
}

// newPlan reads a scenario, and refuses what the stage cannot play.
func newPlan(s *sim.Scenario) (*plan, error) {
	p := &plan{scenario: s, ways: make([][2]relay.Way, len(s.Servers))}
	switch {
	case len(s.Trackers)+len(s.Services) > 0:
		return nil, fmt.Errorf("%s: the stage has no trackers and no services", s.Name)
	case s.Warmup != 0 || s.DNS.Members != nil || !s.DNS.Delay.IsZero() || !s.DNS.Propagation.IsZero():
		return nil, fmt.Errorf("%s: the stage has no warmup, and DNS names everybody at once", s.Name)
	}
	for i := range s.Servers {
		if d := (sim.Server{Name: s.Servers[i].Name, Age: s.Servers[i].Age, Pacing: true}); s.Servers[i] != d {
			return nil, fmt.Errorf("%s: server %s: the stage knows servers as they are by default", s.Name, d.Name)
		}
		if i > 0 && s.Servers[i].Age >= s.Servers[i-1].Age {
			return nil, fmt.Errorf("%s: the stage starts servers in their order, the oldest first", s.Name)
		}
	}
	for i := range s.Links {
		if err := p.link(&s.Links[i]); err != nil {
			return nil, fmt.Errorf("%s: link %d: %w", s.Name, i, err)
		}
	}
	for i := range s.Faults {
		if err := p.fault(&s.Faults[i]); err != nil {
			return nil, fmt.Errorf("%s: fault %d: %w", s.Name, i, err)
		}
	}
	if err := p.arrive(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *plan) link(l *sim.Link) error {
	plain := sim.Link{From: l.From, To: l.To, Both: l.Both, Delay: l.Delay, Loss: l.Loss}
	if *l != plain {
		return fmt.Errorf("the relay knows delay and loss")
	}
	servers, ways, err := p.between(l.From, l.To, l.Both)
	for _, server := range servers {
		for w, is := range ways {
			if is {
				p.ways[server][w] = relay.Way{Delay: l.Delay, Loss: l.Loss}
			}
		}
	}
	return err
}

func (p *plan) fault(f *sim.Fault) error {
	var servers []int
	what := change{at: f.At}
	switch f.Kind {
	case sim.FaultPartition:
		var err error
		if servers, what.cut, err = p.between(f.From, f.To, f.Both); err != nil {
			return err
		}
	case sim.FaultKill:
		servers, what.kill = []int{p.server(f.Server)}, true
	default:
		return fmt.Errorf("the stage cannot do %v", f.Kind)
	}
	for _, what.server = range servers {
		p.changes = append(p.changes, what)
		if what.kill && p.scenario.DNS.Leave >= 0 {
			p.list(what.server, f.At+p.scenario.DNS.Leave, false)
		}
		if f.For == 0 {
			continue
		}
		over := what
		over.at, over.up = f.At+f.For, true
		p.changes = append(p.changes, over)
		if what.kill && p.scenario.DNS.Join >= 0 {
			p.list(what.server, over.at+p.scenario.DNS.Join, true)
		}
	}
	return nil
}

// list has DNS name a server, or no more.
func (p *plan) list(server int, at time.Duration, named bool) {
	p.changes = append(p.changes, change{at: at, server: server, listed: &named})
}

// between returns the servers that a link or fault is about, and which ways. One end of it is all
// clients: a relay does not tell them apart.
func (p *plan) between(from, to string, both bool) (servers []int, ways [2]bool, err error) {
	f, t := p.server(from), p.server(to)
	if f < 0 && from != "*" || t < 0 && to != "*" {
		return nil, ways, fmt.Errorf("from %q to %q: the relay does not tell clients apart", from, to)
	}
	ways = [2]bool{both || t >= 0 || f < 0, both || f >= 0 || t < 0}
	for i := range p.scenario.Servers {
		if one := max(f, t); one < 0 || one == i {
			servers = append(servers, i)
		}
	}
	return servers, ways, nil
}

// server returns the index of a server, or -1.
func (p *plan) server(name string) int {
	for i := range p.scenario.Servers {
		if p.scenario.Servers[i].Name == name {
			return i
		}
	}
	return -1
}

// arrive takes the requests from the simulation.
func (p *plan) arrive() error {
	first := map[int]int{} // by client, the index of its first kind of request
	client, kinds := 0, 0
	for i := range p.scenario.Clients {
		g := &p.scenario.Clients[i]
		for range max(1, g.Count) {
			first[client] = kinds
			client++
		}
		kinds += len(g.Mix)
	}
	_, err := sim.Run(p.scenario, 1, recorder(func(r *sim.Record) {
		if r.Kind == sim.RecordSubmit {
			p.submits = append(p.submits, submit{r.At, r.Client, first[r.Client] + r.Choice})
		}
	}))
	return err
}

// sameRequests returns the scenario with the requests of its first seed, under whatever seed: each
// client makes them when it made them then. What is left to chance is what the network does.
func sameRequests(s *sim.Scenario) (*sim.Scenario, error) {
	times := make([][]time.Duration, len(s.ClientNames()))
	_, err := sim.Run(s, 1, recorder(func(r *sim.Record) {
		if r.Kind == sim.RecordSubmit {
			times[r.Client] = append(times[r.Client], r.At)
		}
	}))
	if err != nil {
		return nil, err
	}
	same := *s
	same.Auth = apikey.AuthNone // sealing changes no result and takes time
	same.Clients = nil
	for i := range s.Clients {
		for n := range max(1, s.Clients[i].Count) {
			one := s.Clients[i]
			one.Name, one.Count = fmt.Sprintf("%s-%d", one.Name, n), 1
			one.Arrivals = sim.Arrivals{Kind: sim.ArriveTrace, Times: times[len(same.Clients)]}
			same.Clients = append(same.Clients, one)
		}
	}
	return &same, same.Validate()
}

// requests returns what clients ask, in the order that submit.Asks counts in.
func (p *plan) requests() ([]weir.Request, error) {
	var all []weir.Request
	for i := range p.scenario.Clients {
		for _, c := range p.scenario.Clients[i].Mix {
			var r weir.Request
			for _, take := range c.Take {
				b, err := p.bucket(take.Bucket)
				if err != nil {
					return nil, err
				}
				r.Resources = append(r.Resources, b.Take(int(take.Tokens)))
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func (p *plan) bucket(name string) (weir.RateBucket, error) {
	for i := range p.scenario.Buckets {
		b := &p.scenario.Buckets[i]
		if b.Name == name && b.Count <= 1 {
			return weir.Bucket(b.Name, int(b.Limit), b.Window), nil
		}
	}
	return weir.RateBucket{}, fmt.Errorf("bucket %s: the stage has no families of buckets", name)
}

// recorder is a function that takes records.
type recorder func(*sim.Record)

// Record hands r on.
func (f recorder) Record(r *sim.Record) { f(r) }
