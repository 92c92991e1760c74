package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

const (
	defaultPort     = "53"
	defaultTimeout  = 2 * time.Second // of one try at one server
	defaultAttempts = 2               // rounds over all servers
	maxServers      = 8
	familyGrace     = 500 * time.Millisecond // for the slower of A and AAAA
	partialTTL      = 10 * time.Second       // of addresses while one family failed
)

// NewDNS returns a resolver that asks these servers and no others, each given
// as an IP literal with or without a port (53): "127.0.0.1:1053", "::1",
// "[2001:db8::1]:53". It asks over UDP with EDNS0, over TCP where an answer is
// truncated, and the next server where one is silent for two seconds, refuses
// or fails; it goes over the list twice. The next question begins with the
// server behind the one that failed, so that a dead one is waited for once and
// not in every question. Between one and eight servers.
func NewDNS(servers ...string) (Resolver, error) {
	if len(servers) == 0 || len(servers) > maxServers {
		return nil, fmt.Errorf("discovery: %d resolver addresses given; give between 1 and %d", len(servers), maxServers)
	}
	r := &dnsResolver{timeout: defaultTimeout, attempts: defaultAttempts, grace: familyGrace}
	for _, s := range servers {
		a, err := parseResolver(s)
		if err != nil {
			return nil, err
		}
		r.servers = append(r.servers, a)
	}
	return r, nil
}

func parseResolver(s string) (string, error) {
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return net.JoinHostPort(ip.String(), defaultPort), nil
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return "", fmt.Errorf("discovery: resolver %q is not an IP address with an optional port, such as 127.0.0.1:1053; a name would itself have to be looked up", s)
	}
	if a.Port() == 0 {
		return "", fmt.Errorf("discovery: resolver %q has port 0; give the port that the DNS server listens on", s)
	}
	return a.String(), nil
}

// dnsResolver asks fixed servers. Only first ever changes.
type dnsResolver struct {
	servers  []string // host:port
	timeout  time.Duration
	attempts int
	grace    time.Duration
	first    atomic.Uint32 // which server a question begins with
}

func (r *dnsResolver) LookupSRV(ctx context.Context, name string) ([]SRV, time.Duration, error) {
	ans, err := r.query(ctx, name, dns.TypeSRV)
	if err != nil {
		return nil, 0, err
	}
	out := make([]SRV, 0, min(len(ans.records), MaxTargets))
	for _, rr := range ans.records {
		srv, ok := rr.(*dns.SRV)
		if !ok || srv.Target == "." { // a lone dot: decidedly no service here (RFC 2782)
			continue
		}
		out = append(out, SRV{Target: strings.ToLower(srv.Target), Port: srv.Port})
	}
	out = sortedSRV(out)
	if len(out) == 0 {
		return nil, 0, notFound(name, dns.TypeSRV, ans.server, "its SRV records name no server, so the service is not offered")
	}
	return out, ans.ttl, nil
}

func sortedSRV(out []SRV) []SRV {
	slices.SortFunc(out, func(a, b SRV) int {
		if c := strings.Compare(a.Target, b.Target); c != 0 {
			return c
		}
		return int(a.Port) - int(b.Port)
	})
	out = slices.Compact(out)
	return slices.Clip(out[:min(len(out), MaxTargets)])
}

// family is the outcome of one of the two address questions.
type family struct {
	ans answer
	err error
}

func (r *dnsResolver) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan family, 2) // room for both: nobody is left behind
	for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
		go func() {
			ans, err := r.query(ctx, host, t)
			results <- family{ans, err}
		}()
	}
	first := <-results
	if first.err == nil {
		// There are addresses: the other question may not hold them up for long.
		late := time.AfterFunc(r.grace, cancel)
		defer late.Stop()
	}
	return combine(first, <-results)
}

func combine(a, b family) ([]netip.Addr, time.Duration, error) {
	if a.err != nil && b.err == nil {
		a, b = b, a
	}
	if a.err != nil {
		return nil, 0, worse(a.err, b.err)
	}
	addrs, ttl := addresses(a.ans), a.ans.ttl
	switch {
	case b.err == nil:
		addrs, ttl = append(addrs, addresses(b.ans)...), min(ttl, b.ans.ttl)
	case !errors.Is(b.err, ErrNotFound):
		ttl = min(ttl, partialTTL)
	}
	return sortedAddrs(addrs), ttl, nil
}

// worse picks the error to tell when neither question found anything: one that
// could not be answered says more than "no data", and a name that does not
// exist more than a type that does not.
func worse(a, b error) error {
	if errors.Is(a, ErrNotFound) && (!errors.Is(b, ErrNotFound) || errors.Is(b, errNoName)) {
		return b
	}
	return a
}

func addresses(ans answer) []netip.Addr {
	out := make([]netip.Addr, 0, len(ans.records))
	for _, rr := range ans.records {
		var ip net.IP
		switch rr := rr.(type) {
		case *dns.A:
			ip = rr.A
		case *dns.AAAA:
			ip = rr.AAAA
		}
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func sortedAddrs(out []netip.Addr) []netip.Addr {
	slices.SortFunc(out, netip.Addr.Compare)
	out = slices.Compact(out)
	return slices.Clip(out[:min(len(out), MaxAddrs)])
}
