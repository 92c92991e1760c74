package dnszone

import (
	"fmt"
	"net/netip"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/filewatch"
	"github.com/weirhq/weir/internal/yamlfile"
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
	data, err := filewatch.Read(path, maxFile, nil)
	if err != nil {
		return File{}, fmt.Errorf("dnszone: %w", yamlfile.InFile(path, err))
	}
	f, err := parseMembers(data)
	if err != nil {
		return File{}, fmt.Errorf("dnszone: %w", yamlfile.InFile(path, err))
	}
	return f, nil
}

func parseMembers(data []byte) (File, error) {
	root, err := yamlfile.Parse(data)
	if err != nil {
		return File{}, err
	}
	var d fileDecoder
	hasMembers := false
	err = yamlfile.Mapping(root, "the file", []yamlfile.Field{
		{Name: "members", Decode: func(n *yaml.Node) error {
			hasMembers = true
			return yamlfile.Sequence(n, "members", d.member)
		}},
		{Name: "keys", Decode: func(n *yaml.Node) error {
			d.file.KeyIDs = []uint64{} // not nil: an empty list is no key
			return yamlfile.Sequence(n, "keys", d.key)
		}},
	})
	switch {
	case err != nil:
		return File{}, err
	case !hasMembers:
		return File{}, yamlfile.At(root, "there is no field `members`; write `members: []` for none")
	}
	return d.file, nil
}

// fileDecoder takes in the parts of a members file.
type fileDecoder struct {
	file    File
	records int // SRV records that the members need
}

func (d *fileDecoder) member(n *yaml.Node) error {
	var m Member
	hasID := false
	err := yamlfile.Mapping(n, "a member", []yamlfile.Field{
		{Name: "id", Decode: func(n *yaml.Node) (err error) {
			hasID = true
			m.ID, err = number(n, "id", "the server's ID, which it logs when it starts")
			return err
		}},
		{Name: "addr", Decode: func(n *yaml.Node) error {
			if n.Kind == yaml.SequenceNode || n.Kind == yaml.AliasNode && n.Alias.Kind == yaml.SequenceNode {
				return yamlfile.Sequence(n, "addr", m.endpoint)
			}
			return m.endpoint(n)
		}},
	})
	switch {
	case err != nil:
		return err
	case !hasID:
		return yamlfile.At(n, "the member has no `id`")
	case len(m.Addrs) == 0:
		return yamlfile.At(n, "the member has no `addr`")
	}
	return d.add(n, m)
}

// add checks a member by itself and beside those before it.
func (d *fileDecoder) add(n *yaml.Node, m Member) error {
	for _, other := range d.file.Members {
		if other.ID == m.ID {
			return yamlfile.At(n, "a member above has the ID %v too; every server process has its own", m.ID)
		}
	}
	h, err := newHost(m)
	if err != nil {
		return yamlfile.At(n, "%s", err)
	}
	if d.records += len(h.ports); d.records > MaxRecords {
		return yamlfile.At(n, "more than %d members (or member ports), which is all that a zone holds", MaxRecords)
	}
	d.file.Members = append(d.file.Members, m)
	return nil
}

func (m *Member) endpoint(n *yaml.Node) error {
	text, err := yamlfile.Text(n, "addr")
	if err != nil {
		return err
	}
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return yamlfile.At(n, "`addr` is an IP address with a port, such as 192.0.2.1:29292 or \"[2001:db8::1]:29292\", or a list of them")
	}
	m.Addrs = append(m.Addrs, a)
	return nil
}

func (d *fileDecoder) key(n *yaml.Node) error {
	id, err := number(n, "keys", "a list of API key IDs")
	d.file.KeyIDs = append(d.file.KeyIDs, uint64(id))
	return err
}

// number reads a decimal number of 64 bits, which server IDs and key IDs are.
func number(n *yaml.Node, field, meaning string) (ident.ServerID, error) {
	text, err := yamlfile.Text(n, field)
	if err != nil {
		return 0, err
	}
	id, err := ident.ParseServerID(text)
	if err != nil {
		return 0, yamlfile.At(n, "`%s` is %s, in decimal and without leading zeros", field, meaning)
	}
	return id, nil
}
