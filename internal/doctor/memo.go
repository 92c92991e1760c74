package doctor

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/discovery"
)

// memo is a resolver that asks each question once. The client of the last step
// then sees what was examined, and nobody waits for DNS twice.
type memo struct {
	discovery.Resolver

	mu    sync.Mutex
	srvs  map[string]srvAnswer
	addrs map[string]addrAnswer
}

type srvAnswer struct {
	records []discovery.SRV
	ttl     time.Duration
	err     error
}

type addrAnswer struct {
	addrs []netip.Addr
	ttl   time.Duration
	err   error
}

func newMemo(r discovery.Resolver) *memo {
	if r == nil {
		return nil
	}
	return &memo{Resolver: r, srvs: make(map[string]srvAnswer), addrs: make(map[string]addrAnswer)}
}

func (m *memo) LookupSRV(ctx context.Context, name string) ([]discovery.SRV, time.Duration, error) {
	m.mu.Lock()
	a, known := m.srvs[name]
	m.mu.Unlock()
	if !known {
		a.records, a.ttl, a.err = m.Resolver.LookupSRV(ctx, name)
		m.mu.Lock()
		m.srvs[name] = a
		m.mu.Unlock()
	}
	return a.records, a.ttl, a.err
}

func (m *memo) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	m.mu.Lock()
	a, known := m.addrs[host]
	m.mu.Unlock()
	if !known {
		a.addrs, a.ttl, a.err = m.Resolver.LookupAddrs(ctx, host)
		m.mu.Lock()
		m.addrs[host] = a
		m.mu.Unlock()
	}
	return a.addrs, a.ttl, a.err
}
