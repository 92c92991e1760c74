package discovery

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// HostedZone is the zone of the hosted Rate Limitly service. It is never a
// default: a key's cookie or label must not travel to somebody else's servers
// because an option was forgotten (docs/protocol.md, "Discovery").
const HostedZone = "p0.ratelimitly.com"

const (
	servicePrefix = "_ratelimitly._udp."
	maxName       = 253 // octets of a DNS name in text, without the trailing dot
	maxLabel      = 63
	maxKeyLabel   = len("c-18446744073709551615.")
	maxDomain     = maxName - len(servicePrefix)
	maxZone       = maxDomain - maxKeyLabel
)

// Domain returns the domain of an API key's r-servers in a zone: "c-<key
// id>.<zone>". The zone is taken as it is; check it first with [CheckZone].
func Domain(zone string, keyID uint64) string {
	return "c-" + strconv.FormatUint(keyID, 10) + "." + strings.TrimSuffix(zone, ".")
}

// ServiceName returns the name whose SRV records list the r-servers of a
// domain. The domain is taken as it is; check it first with [CheckDomain].
func ServiceName(domain string) string {
	return servicePrefix + strings.TrimSuffix(domain, ".")
}

// CheckZone reports why a zone cannot be used: it is empty, an IP address, has
// characters other than ASCII letters, digits, '-' and '_', has a label that is
// empty or over 63 octets, or leaves no room for the names that are made of it
// (at most 212 octets). A trailing dot is allowed.
func CheckZone(zone string) error {
	return checkName("zone", zone, maxZone)
}

// CheckDomain does for a client's whole domain what [CheckZone] does for a zone;
// a domain may have at most 235 octets.
func CheckDomain(domain string) error {
	return checkName("domain", domain, maxDomain)
}

func checkName(what, name string, limit int) error {
	s := strings.TrimSuffix(name, ".")
	if s == "" {
		return fmt.Errorf("discovery: the %s is empty; give one such as rl.example.com", what)
	}
	if len(s) > limit {
		return fmt.Errorf("discovery: the %s has %d octets; at most %d leave room for the names below it", what, len(s), limit)
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return fmt.Errorf("discovery: the %s %q is an IP address; give a DNS name, or list the servers themselves", what, name)
	}
	for label := range strings.SplitSeq(s, ".") {
		if why := checkLabel(label); why != "" {
			return fmt.Errorf("discovery: the %s %q %s", what, name, why)
		}
	}
	return nil
}

func checkLabel(label string) string {
	if label == "" {
		return "has an empty label: two dots in a row, or one at the front"
	}
	if len(label) > maxLabel {
		return fmt.Sprintf("has a label of %d octets; DNS allows %d", len(label), maxLabel)
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		return "has a label that begins or ends with '-'"
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		case c >= 0x80:
			return "has a character that is not ASCII; write the label in its xn-- form"
		default:
			return fmt.Sprintf("has the character %q; a name has letters, digits, '-' and '_'", c)
		}
	}
	return ""
}
