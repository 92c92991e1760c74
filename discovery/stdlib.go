package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// netResolver looks up through the standard library, for systems that keep
// their DNS servers elsewhere than in a resolv.conf. It knows no TTL.
type netResolver struct{ r *net.Resolver }

// await runs a lookup that heeds its context late or, in a system call, not at
// all. The caller is let go at once; the lookup ends by itself within the
// system's own timeout.
func await[T any](ctx context.Context, lookup func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := lookup()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func (n netResolver) LookupSRV(ctx context.Context, name string) ([]SRV, time.Duration, error) {
	if err := checkQuestion(name); err != nil {
		return nil, 0, fmt.Errorf("discovery: SRV %s: %w", name, err)
	}
	// An error beside records only says that some were left out.
	records, err := await(ctx, func() ([]*net.SRV, error) {
		_, records, err := n.r.LookupSRV(ctx, "", "", dns.Fqdn(name))
		return records, err
	})
	if err != nil && len(records) == 0 {
		return nil, 0, n.failed(ctx, "SRV", name, err)
	}
	out := make([]SRV, 0, min(len(records), MaxTargets))
	for _, rr := range records {
		if rr.Target != "." {
			out = append(out, SRV{Target: strings.ToLower(dns.Fqdn(rr.Target)), Port: rr.Port})
		}
	}
	if out = sortedSRV(out); len(out) == 0 {
		return nil, 0, fmt.Errorf("discovery: SRV %s: %w, says the system's resolver", name, errNoData)
	}
	return out, 0, nil
}

func (n netResolver) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if err := checkQuestion(host); err != nil {
		return nil, 0, fmt.Errorf("discovery: A and AAAA %s: %w", host, err)
	}
	// Both families in one question: asked for one by one, a system may tell of an
	// IPv4-only host as of a failure, so a [PartialError] could not be trusted.
	found, err := await(ctx, func() ([]netip.Addr, error) { return n.r.LookupNetIP(ctx, "ip", dns.Fqdn(host)) })
	if err != nil {
		return nil, 0, n.failed(ctx, "A and AAAA", host, err)
	}
	for i, a := range found {
		found[i] = a.Unmap()
	}
	return sortedAddrs(found), 0, nil
}

func (n netResolver) failed(ctx context.Context, what, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("discovery: %s %s: given up while asking the system's resolver: %w", what, name, context.Cause(ctx))
	}
	var de *net.DNSError
	if errors.As(err, &de) && de.IsNotFound {
		return fmt.Errorf("discovery: %s %s: %w: no such name or record, says the system's resolver; check the name, and that a server is registered in the zone",
			what, name, ErrNotFound)
	}
	return fmt.Errorf("discovery: %s %s: the system's resolver failed; check its servers: %w", what, name, err)
}
