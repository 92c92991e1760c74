// Package yamlfile reads small YAML configuration files strictly: fields that are not
// known, fields that are there twice and values of the wrong kind are mistakes, every
// mistake has its line and column, and no message repeats a value, which may be a
// secret.
//
// A caller walks the nodes: [Parse] gives the root, [Mapping], [Sequence], [Text] and
// [Bool] take it apart, [At] says what is wrong with a node, and [InFile] adds the
// file's name.
package yamlfile

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Fault is what is wrong with a file, and where.
type Fault struct {
	Line, Column int // from 1; 0 if no place is at fault
	Text         string
}

// Error returns "line:column: text", or the text alone.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.Text
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Text)
}

// At returns a [Fault] at a node.
func At(n *yaml.Node, format string, args ...any) error {
	return &Fault{n.Line, n.Column, fmt.Sprintf(format, args...)}
}

// InFile names the file of a fault, as in "tenants.yaml:3:5: text". Other errors get
// the name in front too.
func InFile(path string, err error) error {
	var f *Fault
	if errors.As(err, &f) && f.Line > 0 {
		return fmt.Errorf("%s:%w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Parse returns the root node of a file of exactly one document.
func Parse(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, syntaxFault(data, err)
	}
	if len(doc.Content) != 1 {
		return nil, &Fault{Text: notOneDocument}
	}
	return doc.Content[0], nil
}

const notOneDocument = "the file is empty, or more than one YAML document"

// syntaxFault gives an error of the YAML library a place, and leaves out of it what
// could be a secret.
func syntaxFault(data []byte, err error) error {
	var one *yaml.LoadError
	if !errors.As(err, &one) {
		return &Fault{Text: "not YAML"}
	}
	line, column := one.Mark.Line, one.Mark.Column
	switch one.Stage {
	case "reader": // knows only the offset
		line, column = position(data, one.Mark.Index)
	case "composer": // repeats the alias's name
		return &Fault{line, column, "not YAML: an alias has no anchor"}
	case "scanner", "parser":
	default: // what is left is about the number of documents
		return &Fault{Text: notOneDocument}
	}
	return &Fault{line, column, "not YAML: " + one.Message}
}

// position returns line and column, from 1, of a byte offset.
func position(data []byte, offset int) (line, column int) {
	before := string(data[:min(max(offset, 0), len(data))])
	return 1 + strings.Count(before, "\n"), len(before) - strings.LastIndexByte(before, '\n')
}

// Field is a field that a mapping may have.
type Field struct {
	Name   string
	Decode func(value *yaml.Node) error
}

// Mapping hands the values of a mapping to their fields, in the file's order. what
// names the mapping in messages, as in "a tenant".
func Mapping(n *yaml.Node, what string, fields []Field) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return At(n, "%s must be a mapping with the fields %s", what, names(fields))
	}
	seen := make(map[string]bool, len(fields))
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		f := find(fields, name)
		if f == nil {
			// The name may be a piece of a key that a line broke apart, so it is not repeated.
			return At(name, "%s has no field of this name; it has %s", what, names(fields))
		}
		if seen[f.Name] {
			return At(name, "the field `%s` is there twice", f.Name)
		}
		seen[f.Name] = true
		if err := f.Decode(value); err != nil {
			return err
		}
	}
	return nil
}

// Sequence hands the items of a list to a function, in order. what is the name of its
// field.
func Sequence(n *yaml.Node, what string, item func(*yaml.Node) error) error {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		return At(n, "`%s` must be a list", what)
	}
	for _, c := range n.Content {
		if err := item(c); err != nil {
			return err
		}
	}
	return nil
}

// Text returns a scalar as it is written, whatever YAML takes it for. what is the name
// of its field.
func Text(n *yaml.Node, what string) (string, error) {
	v := resolve(n)
	if v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null" {
		return "", At(n, "`%s` must be a text", what)
	}
	return v.Value, nil
}

// Bool returns true or false, which must be written so. what is the name of its field.
func Bool(n *yaml.Node, what string) (bool, error) {
	v := resolve(n)
	if v.Kind != yaml.ScalarNode || v.Value != "true" && v.Value != "false" {
		return false, At(n, "`%s` must be true or false", what)
	}
	return v.Value == "true", nil
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func find(fields []Field, name *yaml.Node) *Field {
	for i := range fields {
		if name.Kind == yaml.ScalarNode && name.Value == fields[i].Name {
			return &fields[i]
		}
	}
	return nil
}

func names(fields []Field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.Name
	}
	return strings.Join(list, ", ")
}
