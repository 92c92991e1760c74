package responder

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/discovery"
)

// A Zone is a [discovery.Resolver] whose records a test writes. The zero Zone is
// empty.
type Zone struct {
	mu      sync.Mutex
	domains map[string][]discovery.SRV
	hosts   map[string][]netip.Addr
	ttl     time.Duration
	err     error
	hanging func(name string) bool
	asked   []string
}

// Set makes members what is known under a domain, for as long as ttl says.
func (z *Zone) Set(domain string, ttl time.Duration, members ...discovery.Server) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.domains == nil {
		z.domains, z.hosts = make(map[string][]discovery.SRV), make(map[string][]netip.Addr)
	}
	z.ttl = ttl
	var records []discovery.SRV
	for _, m := range members {
		host := m.ID.Label() + "." + domain
		z.hosts[host] = nil
		for _, a := range m.Addrs {
			z.hosts[host] = append(z.hosts[host], a.Addr())
		}
		records = append(records, discovery.SRV{Target: host + ".", Port: m.Addrs[0].Port()})
	}
	z.domains[domain] = records
}

// Fail makes every lookup fail with err, or none if it is nil.
func (z *Zone) Fail(err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.err = err
}

// Hang makes lookups of the names that which is true for wait until their context
// ends; nil is for none.
func (z *Zone) Hang(which func(name string) bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.hanging = which
}

// Asked returns the names that were looked up, in order.
func (z *Zone) Asked() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// enter notes a lookup, and hangs or fails it.
func (z *Zone) enter(ctx context.Context, name string) error {
	z.mu.Lock()
	z.asked = append(z.asked, name)
	hangs, err := z.hanging != nil && z.hanging(name), z.err
	z.mu.Unlock()
	if !hangs {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// LookupSRV implements [discovery.Resolver].
func (z *Zone) LookupSRV(ctx context.Context, name string) ([]discovery.SRV, time.Duration, error) {
	if err := z.enter(ctx, name); err != nil {
		return nil, 0, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	domain, _ := strings.CutPrefix(name, "_ratelimitly._udp.")
	records, ok := z.domains[domain]
	if !ok {
		return nil, 0, discovery.ErrNotFound
	}
	return slices.Clone(records), z.ttl, nil
}

// LookupAddrs implements [discovery.Resolver].
func (z *Zone) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if err := z.enter(ctx, host); err != nil {
		return nil, 0, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	addrs, ok := z.hosts[host]
	if !ok {
		return nil, 0, discovery.ErrNotFound
	}
	return slices.Clone(addrs), z.ttl, nil
}
