package scenario

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
)

const (
	// everybody is the name under which servers have what is the same for all, and which on a
	// link is all clients or all servers.
	everybody      = "*"
	defaultServers = 3
	maxLettered    = 26
)

// servers reads how many servers there are, or each one's settings by its name. What "*" says
// holds for every server that does not say otherwise.
func (d *decoder) servers(n *yaml.Node, s *sim.Scenario) error {
	d.mark("Servers", n)
	if isText(n) {
		many, err := count[int](1, maxLettered)(n, "servers")
		if err != nil {
			return yamlfile.At(n, "`servers` must be a number from 1 to %d, or a mapping from names to settings, as in `servers: {A: {service: 20us}, B: }`", maxLettered)
		}
		return d.numberedServers(many, &s.Servers)
	}
	var common *yaml.Node
	var own [][2]*yaml.Node
	err := d.named(n, "servers", func(name, settings *yaml.Node) error {
		if name.Value == everybody {
			common = settings
			return nil
		}
		own = append(own, [2]*yaml.Node{name, settings})
		return nil
	})
	if err != nil {
		return err
	}
	if len(own) == 0 {
		for i := range defaultServers {
			name := &yaml.Node{Kind: yaml.ScalarNode, Value: letter(i), Line: n.Line, Column: n.Column}
			own = append(own, [2]*yaml.Node{name, nil})
		}
	}
	for i, o := range own {
		if err := d.server(i, len(own), o[0], common, o[1], &s.Servers); err != nil {
			return err
		}
	}
	return nil
}

// numberedServers makes servers A, B and so on, all by default settings.
func (d *decoder) numberedServers(many int, to *[]sim.Server) error {
	for i := range many {
		if err := d.server(i, many, &yaml.Node{Value: letter(i)}, nil, nil, to); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) server(i, many int, name, common, own *yaml.Node, to *[]sim.Server) error {
	at := fmt.Sprintf("Servers[%d]", i)
	if name.Line > 0 {
		d.mark(at, name)
	}
	// An hour between two, so that it is plain who is older.
	srv := sim.Server{Name: name.Value, Age: time.Duration(many-i) * time.Hour, Pacing: true}
	for _, settings := range []*yaml.Node{common, own} {
		if settings == nil {
			continue
		}
		if err := d.settings(settings, "a server", d.serverFields(at, &srv)); err != nil {
			return err
		}
	}
	*to = append(*to, srv)
	return nil
}

func letter(i int) string { return string(rune('A' + i)) }

func (d *decoder) serverFields(at string, srv *sim.Server) []field {
	return []field{
		value(d, "age", at+".Age", &srv.Age, duration),
		value(d, "workers", at+".Workers", &srv.Workers, count[int](1, 256)),
		value(d, "queue", at+".Queue", &srv.Queue, count[int](1, 1<<20)),
		value(d, "service", at+".Service", &srv.Service, d.dist),
		value(d, "steering", at+".Steering", &srv.Steering, onOff),
		value(d, "clock", at+".Skew", &srv.Skew, step),
		value(d, "estimator", at+".Estimator", &srv.Estimator, estimator),
		value(d, "pacing", at+".Pacing", &srv.Pacing, onOff),
		value(d, "probe", at+".Probe", &srv.Probe, duration),
		value(d, "mode", at+".Shadow", &srv.Shadow, oneOf([]string{"enforce", "shadow"}, []bool{false, true})),
		value(d, "identities", at+".Identities", &srv.Identities, count[int](1, 1<<30)),
		value(d, "answer_bytes", at+".AnswerBytes", &srv.AnswerBytes, count[int](1024, 1<<40)),
		value(d, "skew", at+".ClockSkew", &srv.ClockSkew, duration),
	}
}
