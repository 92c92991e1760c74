package discovery

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

const (
	familyGrace = 500 * time.Millisecond // for the slower of A and AAAA
	partialTTL  = 10 * time.Second       // of addresses while one family failed
)

// family is the outcome of one of the two address questions.
type family struct {
	network string // as in [PartialError]
	ans     answer
	err     error
}

func (r *dnsResolver) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan family, 2) // room for both: nobody is left behind
	ask := func(network string, qtype uint16) {
		ans, err := r.query(ctx, host, qtype)
		results <- family{network, ans, err}
	}
	go ask("ip4", dns.TypeA)
	go ask("ip6", dns.TypeAAAA)
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
	switch {
	case a.err != nil:
		return nil, 0, worse(a.err, b.err)
	case b.err == nil:
		return sortedAddrs(slices.Concat(addresses(a.ans), addresses(b.ans))), min(a.ans.ttl, b.ans.ttl), nil
	case errors.Is(b.err, ErrNotFound):
		return sortedAddrs(addresses(a.ans)), a.ans.ttl, nil
	}
	return sortedAddrs(addresses(a.ans)), min(a.ans.ttl, partialTTL), &PartialError{b.network, b.err}
}

// worse picks the error to tell when neither question found anything: one that
// could not be answered says more than "no data", and a name that does not
// exist more than a type that does not.
func worse(a, b error) error {
	if errors.Is(a, ErrNotFound) && (!errors.Is(b, ErrNotFound) || errors.Is(b, ErrNoName)) {
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
