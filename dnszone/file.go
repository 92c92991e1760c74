package dnszone

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/ident"
)

// maxFile is the longest members file that is read, in bytes; [MaxRecords]
// members take a small part of it.
const maxFile = 1 << 20

// File is the content of a members file.
type File struct {
	Members []Member
	KeyIDs  []uint64 // nil when the file has no `keys`: every key ID
}

// LoadMembers reads a members file, in YAML:
//
//	members:
//	  - id: 1015809
//	    addr: 192.0.2.1:29292
//	  - id: 1015810
//	    addr: [192.0.2.2:29292, "[2001:db8::2]:29292"]
//	keys: [7, 8]      # API key IDs that have servers here; without it, every one
//
// An error is one line that begins with file:line:column where a place is at
// fault. Unknown and repeated fields are errors, and so is a file that says
// nothing: it may be half written. `members: []` says that there are none.
func LoadMembers(path string) (File, error) {
	data, err := readFile(path)
	if err != nil {
		return File{}, fmt.Errorf("dnszone: members file %s: %w", path, err)
	}
	f, err := parseMembers(data)
	var at *placed
	switch {
	case errors.As(err, &at):
		return File{}, fmt.Errorf("dnszone: %s:%d:%d: %s", path, at.line, at.column, at.text)
	case err != nil:
		return File{}, fmt.Errorf("dnszone: members file %s: %w", path, err)
	}
	return f, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) { // it repeats the path
			return nil, pe.Err
		}
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	return data, err
}

// placed is an error at a place in the file.
type placed struct {
	line, column int // from 1
	text         string
}

func (p *placed) Error() string { return fmt.Sprintf("%d:%d: %s", p.line, p.column, p.text) }

func fault(n *yaml.Node, format string, args ...any) error {
	return &placed{n.Line, n.Column, fmt.Sprintf(format, args...)}
}

func parseMembers(data []byte) (File, error) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return File{}, syntaxError(data, err)
	}
	if len(doc.Content) != 1 {
		return File{}, errNoDocument
	}
	var f File
	hasMembers := false
	root := doc.Content[0]
	err := fields(root, "the file", map[string]func(*yaml.Node) error{
		"members": func(n *yaml.Node) (err error) {
			hasMembers = true
			f.Members, err = members(n)
			return err
		},
		"keys": func(n *yaml.Node) (err error) {
			f.KeyIDs, err = keyIDs(n)
			return err
		},
	})
	if err == nil && !hasMembers {
		err = fault(root, "there is no field `members`; write `members: []` for none")
	}
	if err != nil {
		return File{}, err
	}
	return f, nil
}

func members(n *yaml.Node) ([]Member, error) {
	list, err := sequence(n, "`members`")
	if err != nil {
		return nil, err
	}
	out, seen, records := make([]Member, 0, len(list)), map[ident.ServerID]int{}, 0
	for _, item := range list {
		m, err := member(item)
		if err != nil {
			return nil, err
		}
		if line := seen[m.ID]; line > 0 {
			return nil, fault(item, "the ID %v is also that of the member in line %d; every server process has its own", m.ID, line)
		}
		seen[m.ID] = item.Line
		h, err := newHost(m)
		if err != nil {
			return nil, fault(item, "%s", err)
		}
		if records += len(h.ports); records > MaxRecords {
			return nil, fault(item, "more than %d members (or member ports), which is all that a zone holds", MaxRecords)
		}
		out = append(out, m)
	}
	return out, nil
}

func member(n *yaml.Node) (Member, error) {
	var m Member
	var hasID bool
	err := fields(n, "a member", map[string]func(*yaml.Node) error{
		"id": func(n *yaml.Node) (err error) {
			hasID = true
			if m.ID, err = ident.ParseServerID(scalar(n)); err != nil {
				return fault(n, "`id` is the server's ID, a decimal number of 64 bits; it prints it when it starts")
			}
			return nil
		},
		"addr": func(n *yaml.Node) (err error) {
			m.Addrs, err = addrs(n)
			return err
		},
	})
	switch {
	case err != nil:
		return Member{}, err
	case !hasID:
		return Member{}, fault(n, "the member has no `id`")
	case len(m.Addrs) == 0:
		return Member{}, fault(n, "the member has no `addr`")
	}
	return m, nil
}

func addrs(n *yaml.Node) ([]netip.AddrPort, error) {
	list := []*yaml.Node{n}
	if resolve(n).Kind == yaml.SequenceNode {
		list = resolve(n).Content
	}
	out := make([]netip.AddrPort, 0, len(list))
	for _, item := range list {
		a, err := netip.ParseAddrPort(scalar(item))
		if err != nil {
			return nil, fault(item, "`addr` is an IP address with a port, such as 192.0.2.1:29292 or \"[2001:db8::1]:29292\" (or a list of them)")
		}
		out = append(out, a)
	}
	return out, nil
}

func keyIDs(n *yaml.Node) ([]uint64, error) {
	list, err := sequence(n, "`keys`")
	if err != nil {
		return nil, err
	}
	out := make([]uint64, 0, len(list)) // not nil: an empty list is no key
	for _, item := range list {
		id, err := ident.ParseServerID(scalar(item)) // the same spelling of 64 bits
		if err != nil {
			return nil, fault(item, "a key is an API key's ID, a decimal number of 64 bits")
		}
		out = append(out, uint64(id))
	}
	return out, nil
}

// fields hands each value of a mapping to the function for its name.
func fields(n *yaml.Node, what string, known map[string]func(*yaml.Node) error) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return fault(n, "%s must be a mapping", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		text := scalar(name)
		f := known[text]
		if f == nil {
			return fault(name, "%s has no field %.40q", what, text)
		}
		if seen[text] {
			return fault(name, "the field `%s` is there twice", text)
		}
		seen[text] = true
		if err := f(n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func sequence(n *yaml.Node, what string) ([]*yaml.Node, error) {
	if r := resolve(n); r.Kind == yaml.SequenceNode {
		return r.Content, nil
	}
	return nil, fault(n, "%s must be a list", what)
}

// scalar returns a scalar's text as it is written, "" for anything else.
func scalar(n *yaml.Node) string {
	if r := resolve(n); r.Kind == yaml.ScalarNode {
		return r.Value
	}
	return ""
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

var errNoDocument = errors.New("it is empty; write `members: []` for none")

// syntaxError gives an error of the YAML library its place.
func syntaxError(data []byte, err error) error {
	var one *yaml.LoadError
	if !errors.As(err, &one) {
		return fmt.Errorf("not YAML: %w", err)
	}
	text := strings.TrimPrefix(one.Message, "yaml: ")
	if strings.HasPrefix(text, "no documents") {
		return errNoDocument
	}
	line, column := one.Mark.Line, one.Mark.Column
	if line == 0 { // only an offset is known
		before := string(data[:min(max(one.Mark.Index, 0), len(data))])
		line, column = 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')
	}
	return &placed{line, column, "not YAML: " + text}
}
