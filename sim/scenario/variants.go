package scenario

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
)

// variant is the root of a scenario whose file says so under `variants`.
type variant struct {
	name string
	root *yaml.Node
}

// split takes the variants out of a file's root. Each is the whole scenario, with what the
// variant says laid over it.
func split(root *yaml.Node) (base *yaml.Node, variants []variant, err error) {
	at := variantsAt(root)
	if at < 0 {
		return root, nil, nil
	}
	rest := *root
	rest.Content = slices.Concat(root.Content[:at], root.Content[at+2:])
	d := &decoder{}
	err = d.named(root.Content[at+1], "variants", func(name, changes *yaml.Node) error {
		v, err := overlay(&rest, changes)
		if err != nil {
			return err
		}
		variants = append(variants, variant{name.Value, v})
		return nil
	})
	return &rest, variants, err
}

func variantsAt(root *yaml.Node) int {
	if root.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "variants" {
			return i
		}
	}
	return -1
}

// overlay returns base with the changes of a variant.
func overlay(base, changes *yaml.Node) (*yaml.Node, error) {
	changes = resolve(changes)
	if changes.Kind != yaml.MappingNode {
		return nil, yamlfile.At(changes, "a variant must be a mapping with the fields that it changes, as in `{policy: fastest-valid}`")
	}
	for i := 0; i+1 < len(changes.Content); i += 2 {
		if f := changes.Content[i]; f.Value == "name" || f.Value == "variants" {
			return nil, yamlfile.At(f, "a variant cannot change `%s`; remove it", f.Value)
		}
	}
	return merge(base, changes, 0), nil
}

// maxDepth bounds merge: an alias may stand within what it stands for. Scenarios are less deep.
const maxDepth = 16

// merge lays over upon base: fields of mappings one by one, and anything else as a whole. It
// changes neither.
func merge(base, over *yaml.Node, depth int) *yaml.Node {
	b, o := resolve(base), resolve(over)
	if b.Kind != yaml.MappingNode || o.Kind != yaml.MappingNode || depth == maxDepth {
		return over
	}
	merged := *b
	merged.Content = slices.Clone(b.Content)
	for i := 0; i+1 < len(o.Content); i += 2 {
		name, value := o.Content[i], o.Content[i+1]
		at := -1
		for j := 0; j+1 < len(b.Content); j += 2 {
			if b.Content[j].Kind == yaml.ScalarNode && name.Kind == yaml.ScalarNode && b.Content[j].Value == name.Value {
				at = j
			}
		}
		if at < 0 {
			merged.Content = append(merged.Content, name, value)
			continue
		}
		merged.Content[at], merged.Content[at+1] = name, merge(b.Content[at+1], value, depth+1)
	}
	return &merged
}
