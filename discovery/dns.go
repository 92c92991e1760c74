package discovery

import (
	"context"
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
