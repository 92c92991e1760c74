package dnszone

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
	"github.com/weirhq/weir/ident"
)

const (
	serviceLabel = "_ratelimitly"
	protoLabel   = "_udp"
	maxZone      = 212 // octets: leaves room for _ratelimitly._udp.c-<20 digits>.
	maxHost      = 253
	maxLabel     = 63
)

func canonical(name string) string { return strings.ToLower(dns.Fqdn(name)) }

func checkZone(zone string) error {
	if strings.TrimSuffix(zone, ".") == "" {
		return errEmptyZone
	}
	if why := nameProblem(zone, maxZone); why != nil {
		return fmt.Errorf("dnszone: Zone %q: %w", zone, why)
	}
	return nil
}

func checkHostName(name string) error {
	if why := nameProblem(name, maxHost); why != nil {
		return fmt.Errorf("dnszone: NameServer %q: %w", name, why)
	}
	return nil
}

func nameProblem(name string, limit int) error {
	s := strings.TrimSuffix(name, ".")
	if len(s) > limit {
		return fmt.Errorf("it has %d octets; at most %d", len(s), limit)
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return errors.New("it is an IP address, not a name")
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabel {
			return fmt.Errorf("a label has %d octets; between 1 and %d", len(label), maxLabel)
		}
		if strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return fmt.Errorf("the label %q has more than ASCII letters, digits, '_' and, inside, '-'", label)
		}
	}
	return nil
}

// node is what a name in the zone is.
type node uint8

const (
	outside node = iota // not in the zone at all
	absent              // no such name
	apex
	empty   // only exists because a name below it does
	service // has the SRV records
	address // has A and AAAA records
)

// find says what a name is in this state, and whose the addresses are. Names
// are compared without case; everything but the one canonical spelling of an ID
// is absent.
func (z *Zone) find(st *state, name string) (node, *host) {
	name = canonical(name)
	if !dns.IsSubDomain(z.name, name) {
		return outside, nil
	}
	labels := dns.SplitDomainName(name)
	labels = labels[:len(labels)-dns.CountLabel(z.name)]
	if len(labels) == 0 {
		return apex, nil
	}
	top := labels[len(labels)-1]
	if id, ok := ident.ParseTarget(top); ok {
		h := st.byID[id]
		if h == nil || len(labels) > 1 {
			return absent, nil
		}
		return address, h
	}
	if z.nsLabel != "" && top == z.nsLabel && len(labels) == 1 {
		return address, z.nsHost
	}
	if !st.hasKey(top) {
		return absent, nil
	}
	switch {
	case len(labels) == 1:
		return empty, nil
	case len(labels) == 2 && labels[0] == protoLabel:
		return empty, nil
	case len(labels) == 3 && labels[0] == serviceLabel && labels[1] == protoLabel:
		return service, nil
	}
	return absent, nil
}

// hasKey reports whether a label is "c-" and the ID of a key that has servers.
func (st *state) hasKey(label string) bool {
	digits, ok := strings.CutPrefix(label, "c-")
	if !ok {
		return false
	}
	id, err := ident.ParseServerID(digits) // the same spelling of 64 bits
	return err == nil && (st.anyKey || st.keys[uint64(id)])
}
