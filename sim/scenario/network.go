package scenario

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
)

// way is which datagrams a link or a fault is about.
type way struct {
	from, to *string
	both     *bool
}

// wayFields are the fields that say so; without any of them it is all of them, both ways.
func (d *decoder) wayFields(at string, w way) []field {
	*w.from, *w.to, *w.both = everybody, everybody, true
	oneWay := func(n *yaml.Node, end *string, path, name string) (err error) {
		if d.marked(at + "between") {
			return yamlfile.At(n, "`between` says the ends already; remove it or `%s`", name)
		}
		*w.both = false
		d.mark(path, n)
		*end, err = text(n, name)
		return err
	}
	return []field{
		{"from", func(n *yaml.Node) error { return oneWay(n, w.from, at+".From", "from") }},
		{"to", func(n *yaml.Node) error { return oneWay(n, w.to, at+".To", "to") }},
		{"between", func(n *yaml.Node) error {
			if !*w.both {
				return yamlfile.At(n, "`from` and `to` say the ends already; remove them or `between`")
			}
			d.mark(at+"between", n)
			return d.between(at, w, n)
		}},
	}
}

// between reads one end, or both: all that goes either way.
func (d *decoder) between(at string, w way, n *yaml.Node) (err error) {
	if isText(n) {
		d.mark(at+".From", n)
		*w.from, err = text(n, "between")
		return err
	}
	ends := 0
	err = d.list(n, "between", func(i int, n *yaml.Node) (err error) {
		ends++
		switch i {
		case 0:
			d.mark(at+".From", n)
			*w.from, err = text(n, "between")
		case 1:
			d.mark(at+".To", n)
			*w.to, err = text(n, "between")
		}
		return err
	})
	if err == nil && ends != 2 {
		return yamlfile.At(n, "`between` must be two ends, as in `between: [web, A]`, or one, and then it is all that it has to do with")
	}
	return err
}

// network reads the link of all, or a list of links, of which the last that fits counts.
func (d *decoder) network(n *yaml.Node, s *sim.Scenario) error {
	d.mark("Links", n)
	if resolve(n).Kind != yaml.SequenceNode {
		return d.link(n, s)
	}
	return d.list(n, "network", func(_ int, n *yaml.Node) error { return d.link(n, s) })
}

func (d *decoder) link(n *yaml.Node, s *sim.Scenario) error {
	at := fmt.Sprintf("Links[%d]", len(s.Links))
	d.mark(at, n)
	var l sim.Link
	err := d.mapping(n, "a link", d.linkFields(at, &l))
	s.Links = append(s.Links, l)
	return err
}

func (d *decoder) linkFields(at string, l *sim.Link) []field {
	return append(d.wayFields(at, way{&l.From, &l.To, &l.Both}),
		value(d, "delay", at+".Delay", &l.Delay, d.dist),
		value(d, "fifo", at+".FIFO", &l.FIFO, onOff),
		value(d, "loss", at+".Loss", &l.Loss, percent),
		field{"burst_loss", func(n *yaml.Node) error {
			d.mark(at+".Burst", n)
			return d.mapping(n, "`burst_loss`", d.burstLossFields(at, &l.Burst))
		}},
		value(d, "duplicate", at+".Duplicate", &l.Duplicate, percent),
		field{"reorder", func(n *yaml.Node) error {
			d.mark(at+".Reorder", n)
			return d.mapping(n, "`reorder`", d.reorderFields(at, l))
		}},
	)
}

func (d *decoder) burstLossFields(at string, b *sim.Burst) []field {
	b.Loss = 0
	return []field{
		value(d, "enter", at+".Burst.Enter", &b.Enter, percent),
		value(d, "leave", at+".Burst.Leave", &b.Leave, percent),
		value(d, "loss", at+".Burst.Loss", &b.Loss, percent),
	}
}

func (d *decoder) reorderFields(at string, l *sim.Link) []field {
	return []field{
		value(d, "chance", at+".Reorder", &l.Reorder, percent),
		value(d, "late", at+".Late", &l.Late, d.dist),
	}
}
