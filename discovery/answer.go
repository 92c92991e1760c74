package discovery

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	maxAliases = 8 // CNAMEs followed for one question
	minTTL     = time.Second
)

// answer is what one question came to.
type answer struct {
	records []dns.RR      // all of the type asked for, at least one
	ttl     time.Duration // smallest of records and aliases
	server  string        // who said so
}

// ErrNoName is the [ErrNotFound] of a name that does not exist at all. The system's
// resolver, where there is no resolv.conf, does not tell it from a missing record.
var ErrNoName = fmt.Errorf("%w: there is no such name (NXDOMAIN)", ErrNotFound)

var errNoData = fmt.Errorf("%w: the name has no such record", ErrNotFound)

var errAliases = errors.New("aliases (CNAME) go in a circle or too far")

func notFound(name string, qtype uint16, server, why string) error {
	return fmt.Errorf("discovery: %s %s: %w: %s, says %s", dns.TypeToString[qtype], name, ErrNotFound, why, server)
}

// chain collects what the answer section says about a name, from alias to
// alias. It keeps the smallest TTL of what it used.
type chain struct {
	name string // where it stands now
	hops int
	ttl  uint32
}

// follow walks the aliases of one message and returns the records at the end of
// them, none when the message does not go as far.
func (c *chain) follow(m *dns.Msg, qtype uint16) ([]dns.RR, error) {
	for {
		if rrs := c.records(m, qtype); len(rrs) > 0 {
			return rrs, nil
		}
		next := c.alias(m)
		if next == "" {
			return nil, nil
		}
		if c.hops++; c.hops > maxAliases {
			return nil, errAliases
		}
		c.name = next
	}
}

func (c *chain) records(m *dns.Msg, qtype uint16) []dns.RR {
	var out []dns.RR
	for _, rr := range m.Answer {
		h := rr.Header()
		// A record of these types that comes without data says nothing.
		if h.Rdlength > 0 && h.Rrtype == qtype && h.Class == dns.ClassINET && strings.EqualFold(h.Name, c.name) {
			out = append(out, rr)
			c.use(h.Ttl)
		}
	}
	return out
}

func (c *chain) alias(m *dns.Msg) string {
	for _, rr := range m.Answer {
		h := rr.Header()
		if cn, ok := rr.(*dns.CNAME); ok && h.Class == dns.ClassINET && strings.EqualFold(h.Name, c.name) {
			c.use(h.Ttl)
			return cn.Target
		}
	}
	return ""
}

func (c *chain) use(ttl uint32) {
	if ttl > 1<<31-1 { // RFC 2181, section 8: as if it were zero
		ttl = 0
	}
	c.ttl = min(c.ttl, ttl)
}

// lifetime is the smallest TTL used; zero ("use once") becomes one second, since
// zero means "unknown" in our results and nobody refreshes faster than that.
func (c *chain) lifetime() time.Duration {
	return max(minTTL, time.Duration(c.ttl)*time.Second)
}

// negative reports whether a message without the records says that there are
// none, rather than that somebody else should be asked.
func negative(m *dns.Msg) bool {
	for _, rr := range m.Ns {
		if rr.Header().Rrtype == dns.TypeSOA {
			return true
		}
	}
	return false
}

// referral reports whether the server does not know and will not find out: it is
// neither authoritative nor recursive, and names other servers.
func referral(m *dns.Msg) bool {
	if m.Authoritative || m.RecursionAvailable || len(m.Answer) > 0 || negative(m) {
		return false
	}
	for _, rr := range m.Ns {
		if rr.Header().Rrtype == dns.TypeNS {
			return true
		}
	}
	return false
}
