package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
)

// mark is where a file has a field of the scenario, and the field's name there, if it has one.
type mark struct {
	node *yaml.Node
	name string
}

func (d *decoder) mark(path string, n *yaml.Node) { d.marks[path] = mark{node: n} }

func (d *decoder) marked(path string) bool { return d.marks[path].node != nil }

// place gives a mistake that [sim.Scenario.Validate] has found its place in the file.
func (d *decoder) place(s *sim.Scenario, err error) error {
	var wrong *sim.FieldError
	if !errors.As(err, &wrong) {
		return &yamlfile.Fault{Text: err.Error()}
	}
	m := d.nearestMark(wrong.Field)
	text := wrong.Reason + meant(s, wrong.Reason)
	if m.name != "" {
		text = "`" + m.name + "`: " + text
	}
	return yamlfile.At(m.node, "%s", text)
}

// nearestMark returns the mark of a path or, where the file does not have it, of the thing that
// it is of.
func (d *decoder) nearestMark(path string) mark {
	for {
		if m, ok := d.marks[path]; ok {
			return m
		}
		path = parent(path)
	}
}

// parent cuts the last step off a path: "Servers[0].Queue", "Servers[0]", "Servers", "".
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// smallest is how little there is to say of what a scenario may lack.
var smallest = map[string]string{"bucket": "100/s", "tracker": "{ttl: 10s}", "service": "{time: 5ms}"}

// meant says which names there are, where a reason is that there is none of a name.
func meant(s *sim.Scenario, reason string) string {
	var kind, name string
	var known []string
	if n, _ := fmt.Sscanf(reason, "there is no %s %q", &kind, &name); n < 2 {
		if n, _ = fmt.Sscanf(reason, "%q is no client", &name); n < 1 {
			return ""
		}
	}
	clients, servers := make([]string, len(s.Clients)), make([]string, len(s.Servers))
	for i := range s.Clients {
		clients[i] = s.Clients[i].Name
	}
	for i := range s.Servers {
		servers[i] = s.Servers[i].Name
	}
	switch kind {
	case "":
		known = clients
		if strings.Contains(reason, "server or *") {
			known = append(known, servers...)
		}
	case "server":
		known = servers
	case "bucket":
		for i := range s.Buckets {
			known = append(known, s.Buckets[i].Name)
		}
	case "tracker":
		for i := range s.Trackers {
			known = append(known, s.Trackers[i].Name)
		}
	case "service":
		for i := range s.Services {
			known = append(known, s.Services[i].Name)
		}
	}
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("; the scenario has no %ss, write `%ss: {%s: %s}`", kind, kind, cmp.Or(name, "NAME"), smallest[kind])
	}
	return "; there are " + strings.Join(known, ", ")
}
