package scenario

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
)

func (d *decoder) faults(n *yaml.Node, s *sim.Scenario) error {
	return d.list(n, "faults", func(i int, n *yaml.Node) error {
		at := fmt.Sprintf("Faults[%d]", i)
		d.mark(at, n)
		var f sim.Fault
		fields := d.faultFields(at, &f)
		if err := d.mapping(n, "a fault", fields); err != nil {
			return err
		}
		if f.Kind == 0 {
			return yamlfile.At(n, "the fault does not say what goes wrong; write one of %s, as in `kill: A`", names(fields[faultTimes:]))
		}
		s.Faults = append(s.Faults, f)
		return nil
	})
}

// faultTimes is how many of the faultFields say when, not what.
const faultTimes = 2

func (d *decoder) faultFields(at string, f *sim.Fault) []field {
	return []field{
		value(d, "at", at+".At", &f.At, duration),
		value(d, "for", at+".For", &f.For, duration),
		d.fault(at, f, "partition", sim.FaultPartition, d.partition),
		d.fault(at, f, "loss", sim.FaultLoss, d.details("`loss`", d.lossFields)),
		d.fault(at, f, "delay", sim.FaultDelay, d.details("`delay`", d.delayFields)),
		d.fault(at, f, "pause", sim.FaultPause, d.faultServer),
		d.fault(at, f, "slow", sim.FaultSlow, d.details("`slow`", d.slowFields)),
		d.fault(at, f, "kill", sim.FaultKill, d.faultServer),
		d.fault(at, f, "forget", sim.FaultForget, d.faultServer),
		d.fault(at, f, "clock", sim.FaultClock, d.details("`clock`", d.clockFields)),
		d.fault(at, f, "dns", sim.FaultMembers, d.dnsFault),
		d.fault(at, f, "work", sim.FaultWork, d.details("`work`", d.workFields)),
	}
}

// fault is the field of one kind of fault, of which a fault has one.
func (d *decoder) fault(at string, f *sim.Fault, name string, kind sim.FaultKind, read func(at string, f *sim.Fault, n *yaml.Node) error) field {
	return field{name, func(n *yaml.Node) error {
		if f.Kind != 0 {
			return yamlfile.At(n, "`%s` is a second fault; write an item of its own for it", name)
		}
		f.Kind = kind
		d.mark(at, n)
		return read(at, f, n)
	}}
}

// details reads what a kind of fault has in a mapping.
func (d *decoder) details(what string, fields func(at string, f *sim.Fault) []field) func(at string, f *sim.Fault, n *yaml.Node) error {
	return func(at string, f *sim.Fault, n *yaml.Node) error { return d.mapping(n, what, fields(at, f)) }
}

// partition reads who is cut off both ways, or the ends.
func (d *decoder) partition(at string, f *sim.Fault, n *yaml.Node) error {
	fields := d.wayFields(at, way{&f.From, &f.To, &f.Both})
	if isText(n) {
		return d.between(at, way{&f.From, &f.To, &f.Both}, n)
	}
	return d.mapping(n, "`partition`", fields)
}

func (d *decoder) lossFields(at string, f *sim.Fault) []field {
	return append(d.wayFields(at, way{&f.From, &f.To, &f.Both}),
		value(d, "chance", at+".Chance", &f.Chance, percent))
}

func (d *decoder) delayFields(at string, f *sim.Fault) []field {
	return append(d.wayFields(at, way{&f.From, &f.To, &f.Both}),
		value(d, "by", at+".Dist", &f.Dist, d.dist))
}

func (d *decoder) faultServer(at string, f *sim.Fault, n *yaml.Node) (err error) {
	d.mark(at+".Server", n)
	f.Server, err = text(n, "the server")
	return err
}

func (d *decoder) slowFields(at string, f *sim.Fault) []field {
	return []field{
		value(d, "server", at+".Server", &f.Server, text),
		value(d, "by", at+".Dist", &f.Dist, d.dist),
	}
}

func (d *decoder) clockFields(at string, f *sim.Fault) []field {
	return []field{
		value(d, "server", at+".Server", &f.Server, text),
		value(d, "clients", at+".From", &f.From, text),
		value(d, "by", at+".Step", &f.Step, step),
	}
}

func (d *decoder) workFields(at string, f *sim.Fault) []field {
	return []field{
		value(d, "service", at+".Service", &f.Service, text),
		value(d, "by", at+".Dist", &f.Dist, d.dist),
	}
}

// dnsFault reads the servers that DNS names, or a word for what it does.
func (d *decoder) dnsFault(at string, f *sim.Fault, n *yaml.Node) (err error) {
	if resolve(n).Kind == yaml.SequenceNode {
		if f.Members, err = d.texts(n, "dns", at+".Members"); err == nil && len(f.Members) == 0 {
			return yamlfile.At(n, "`dns` names no servers; for none at all write `dns: empty`")
		}
		return err
	}
	f.Kind, err = oneOf(
		[]string{"empty", "fails", "stranger"},
		[]sim.FaultKind{sim.FaultEmpty, sim.FaultResolver, sim.FaultStranger},
	)(n, "dns")
	if err != nil {
		return yamlfile.At(n, "`dns` must be a list of the servers that it names, as in `dns: [A, B]`, or empty, fails or stranger")
	}
	return nil
}
