package scenario

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
)

// maxNodes is how many nodes of a file are looked at, those behind aliases each time: a file
// of a few lines can stand for more than any machine could read.
const maxNodes = 1 << 17

// decoder turns the nodes of one file into a scenario, and remembers where each field of it
// stands.
type decoder struct {
	open  func(name string) ([]byte, error)
	marks map[string]mark // by the field's path, such as Clients[0].Mix[1].Weight
	nodes int
}

// field is a field that a mapping may have.
type field struct {
	name   string
	decode func(n *yaml.Node) error
}

// value is the field that parse reads into to. path is where the scenario has it.
func value[T any](d *decoder, name, path string, to *T, parse func(n *yaml.Node, what string) (T, error)) field {
	return field{name, func(n *yaml.Node) (err error) {
		d.marks[path] = mark{n, name}
		*to, err = parse(n, name)
		return err
	}}
}

// pairs hands the fields of a mapping to a function, in the file's order. what names the
// mapping in messages, and right what it should be.
func (d *decoder) pairs(n *yaml.Node, what, right string, pair func(name, value *yaml.Node) error) error {
	m := resolve(n)
	if m.Kind != yaml.MappingNode {
		return yamlfile.At(n, "%s must be %s", what, right)
	}
	seen := make(map[string]bool, len(m.Content)/2)
	for i := 0; i+1 < len(m.Content); i += 2 {
		name, value := m.Content[i], m.Content[i+1]
		if err := d.look(name); err != nil {
			return err
		}
		if name.Kind != yaml.ScalarNode {
			return yamlfile.At(name, "a field's name must be a text")
		}
		if seen[name.Value] {
			return yamlfile.At(name, "`%s` is there twice; remove one", name.Value)
		}
		seen[name.Value] = true
		if err := pair(name, value); err != nil {
			return err
		}
	}
	return nil
}

// mapping decodes a mapping of known fields.
func (d *decoder) mapping(n *yaml.Node, what string, fields []field) error {
	return d.pairs(n, what, "a mapping with the fields "+names(fields), func(name, value *yaml.Node) error {
		for _, f := range fields {
			if f.name == name.Value {
				return f.decode(value)
			}
		}
		return yamlfile.At(name, "%s has no field `%s`; %s", what, name.Value, instead(name.Value, fields))
	})
}

// named decodes a mapping of things by their names. The value may be left out. what is the
// field's name.
func (d *decoder) named(n *yaml.Node, what string, item func(name, value *yaml.Node) error) error {
	return d.pairs(n, "`"+what+"`", "a mapping from names to settings, as in `"+what+": {web: {…}}`", func(name, value *yaml.Node) error {
		if name.Value == "" || strings.ContainsAny(name.Value, "/*, ") && name.Value != everybody {
			return yamlfile.At(name, "%q is no name; take letters, digits, dashes and dots", name.Value)
		}
		return item(name, value)
	})
}

// list decodes a list. what is the field's name.
func (d *decoder) list(n *yaml.Node, what string, item func(i int, n *yaml.Node) error) error {
	l := resolve(n)
	if l.Kind != yaml.SequenceNode {
		return yamlfile.At(n, "`%s` must be a list, as in `%s: [ … ]`", what, what)
	}
	for i, c := range l.Content {
		if err := d.look(c); err != nil {
			return err
		}
		if err := item(i, c); err != nil {
			return err
		}
	}
	return nil
}

// look counts a node that is looked at.
func (d *decoder) look(n *yaml.Node) error {
	if d.nodes++; d.nodes > maxNodes {
		return yamlfile.At(n, "with its aliases written out the file has more than %d fields; write fewer", maxNodes)
	}
	return nil
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// isNull reports whether a field has no value.
func isNull(n *yaml.Node) bool {
	n = resolve(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func isText(n *yaml.Node) bool { return resolve(n).Kind == yaml.ScalarNode && !isNull(n) }

func names(fields []field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

// instead says what to write in place of a name that is not known.
func instead(name string, fields []field) string {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	if near := nearest(name, known); near != "" {
		return "did you mean `" + near + "`?"
	}
	return "it has " + names(fields)
}

// nearest returns the known name that name was probably meant to be, or none.
func nearest(name string, known []string) string {
	best, at := "", min(1+max(1, len(name)/3), len(name))
	for _, k := range known {
		if n := distance(name, k); n < at {
			best, at = k, n
		}
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap with their neighbor until a
// is b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
