package scenario

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
)

func (d *decoder) clients(n *yaml.Node, s *sim.Scenario) error {
	d.mark("Clients", n)
	return d.named(n, "clients", func(name, settings *yaml.Node) error {
		at := fmt.Sprintf("Clients[%d]", len(s.Clients))
		d.mark(at, name)
		c := sim.Clients{Name: name.Value}
		if err := d.mapping(settings, "clients", d.clientFields(at, &c)); err != nil {
			return err
		}
		if c.Arrivals.Kind == 0 {
			return yamlfile.At(name, "the clients do not say when they ask; write one of constant, poisson, burst, closed and trace, as in `poisson: 100/s`")
		}
		if len(c.Mix) == 0 {
			return yamlfile.At(name, "the clients do not say what they ask for; write `ask: …` with the name of a bucket")
		}
		s.Clients = append(s.Clients, c)
		return nil
	})
}

func (d *decoder) clientFields(at string, c *sim.Clients) []field {
	return []field{
		value(d, "count", at+".Count", &c.Count, count[int](1, 1<<16)),
		d.arrival(at, c, "constant", sim.ArriveConstant, d.every("constant")),
		d.arrival(at, c, "poisson", sim.ArrivePoisson, d.every("poisson")),
		d.arrival(at, c, "burst", sim.ArriveBurst, func(at string, a *sim.Arrivals, n *yaml.Node) error {
			return d.mapping(n, "a burst", d.burstFields(at, a))
		}),
		d.arrival(at, c, "closed", sim.ArriveClosed, d.closed),
		d.arrival(at, c, "trace", sim.ArriveTrace, func(at string, a *sim.Arrivals, n *yaml.Node) (err error) {
			d.mark(at+".Times", n)
			a.Times, err = d.trace(n)
			return err
		}),
		value(d, "start", at+".Arrivals.Start", &c.Arrivals.Start, duration),
		value(d, "stop", at+".Arrivals.Stop", &c.Arrivals.Stop, duration),
		{"ask", func(n *yaml.Node) error { return d.ask(at, c, n) }},
		value(d, "clock", at+".Skew", &c.Skew, step),
		value(d, "max_in_flight", at+".MaxInFlight", &c.MaxInFlight, count[int](1, 1<<20)),
	}
}

// arrival is the field of one kind of arrivals, of which clients have one.
func (d *decoder) arrival(at string, c *sim.Clients, name string, kind sim.ArrivalKind, read func(at string, a *sim.Arrivals, n *yaml.Node) error) field {
	return field{name, func(n *yaml.Node) error {
		if c.Arrivals.Kind != 0 {
			return yamlfile.At(n, "`%s` is a second way to say when the clients ask; write clients of another name for it", name)
		}
		c.Arrivals.Kind = kind
		d.mark(at+".Arrivals", n)
		return read(at+".Arrivals", &c.Arrivals, n)
	}}
}

func (d *decoder) every(name string) func(at string, a *sim.Arrivals, n *yaml.Node) error {
	return func(at string, a *sim.Arrivals, n *yaml.Node) (err error) {
		d.mark(at+".Every", n)
		a.Every, err = period(n, name)
		return err
	}
}

func (d *decoder) burstFields(at string, a *sim.Arrivals) []field {
	return []field{
		value(d, "size", at+".Size", &a.Size, count[int](1, 1<<20)),
		value(d, "rate", at+".Every", &a.Every, period),
	}
}

// closed reads how many callers there are, or that and how long they think.
func (d *decoder) closed(at string, a *sim.Arrivals, n *yaml.Node) error {
	if isText(n) {
		return value(d, "closed", at+".Size", &a.Size, count[int](1, 1<<20)).decode(n)
	}
	return d.mapping(n, "`closed`", d.closedFields(at, a))
}

func (d *decoder) closedFields(at string, a *sim.Arrivals) []field {
	return []field{
		value(d, "callers", at+".Size", &a.Size, count[int](1, 1<<20)),
		value(d, "think", at+".Think", &a.Think, d.dist),
	}
}

// ask reads what clients ask for: a bucket's name, a request, or a list of requests from which
// each is drawn by weight.
func (d *decoder) ask(at string, c *sim.Clients, n *yaml.Node) error {
	d.mark(at+".Mix", n)
	if resolve(n).Kind != yaml.SequenceNode {
		return d.choice(fmt.Sprintf("%s.Mix[0]", at), c, n)
	}
	return d.list(n, "ask", func(i int, n *yaml.Node) error {
		return d.choice(fmt.Sprintf("%s.Mix[%d]", at, i), c, n)
	})
}

func (d *decoder) choice(at string, c *sim.Clients, n *yaml.Node) error {
	d.mark(at, n)
	var ch sim.Choice
	var err error
	if isText(n) {
		err = d.take(at, &ch, n)
	} else {
		err = d.mapping(n, "a request", d.choiceFields(at, &ch))
	}
	c.Mix = append(c.Mix, ch)
	return err
}

func (d *decoder) choiceFields(at string, ch *sim.Choice) []field {
	return []field{
		{"take", func(n *yaml.Node) error { return d.take(at, ch, n) }},
		{"guard", func(n *yaml.Node) error { return d.guard(at, ch, n) }},
		value(d, "work", at+".Work", &ch.Work, text),
		value(d, "weight", at+".Weight", &ch.Weight, count[uint32](1, 1<<20)),
	}
}

// take reads the name of the bucket of which one token is taken, or tokens by the names of
// buckets.
func (d *decoder) take(at string, ch *sim.Choice, n *yaml.Node) error {
	d.mark(at+".Take", n)
	if isText(n) {
		name, err := text(n, "take")
		ch.Take = []sim.Take{{Bucket: name, Tokens: 1}}
		return err
	}
	return d.named(n, "take", func(name, tokens *yaml.Node) error {
		t := fmt.Sprintf("%s.Take[%d]", at, len(ch.Take))
		d.mark(t, name)
		many, err := count[uint16](0, 1<<16-1)(tokens, name.Value)
		d.mark(t+".Tokens", tokens)
		ch.Take = append(ch.Take, sim.Take{Bucket: name.Value, Tokens: many})
		return err
	})
}

func (d *decoder) guard(at string, ch *sim.Choice, n *yaml.Node) error {
	d.mark(at+".Guard", n)
	return d.named(n, "guard", func(name, threshold *yaml.Node) error {
		g := fmt.Sprintf("%s.Guard[%d]", at, len(ch.Guard))
		d.mark(g, name)
		below, err := duration(threshold, name.Value)
		d.mark(g+".Threshold", threshold)
		ch.Guard = append(ch.Guard, sim.Guard{Tracker: name.Value, Threshold: below})
		return err
	})
}
