package weir

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	scripted "github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/policy"
)

// testKey returns a key of a tenant for one test.
func testKey(t testing.TB, auth apikey.Auth) apikey.Key {
	t.Helper()
	key, err := apikey.New(auth, 7, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// patientKey returns a key whose quotas allow any horizon, and patient a policy
// that asks again every two seconds for minutes: on real sockets and a busy
// machine no deadline decides a test.
func patientKey(t testing.TB, auth apikey.Auth) apikey.Key {
	t.Helper()
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = 1 << 30
	key, err := apikey.NewLegacy(auth, 7, quotas, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func patient() policy.Policy {
	p := policy.StrictOldest()
	p.Unit, p.Replays = 2*time.Second, 100
	return p
}

// A responder is a scripted r-server, and an exchange one request and the answer
// to it.
type (
	responder = scripted.Responder
	exchange  = scripted.Exchange
)

// received returns how many requests came, and how many different ones.
func received(r *responder) (datagrams, identities int) {
	l := r.Log()
	return len(l.Requests), l.Identities()
}

// zone is a resolver whose records a test writes.
type zone struct {
	mu      sync.Mutex
	srv     []discovery.SRV
	hosts   map[string][]netip.Addr
	ttl     time.Duration
	err     error
	hold    chan struct{} // if not nil, lookups wait for it to be closed
	lookups int
}

func (z *zone) set(ttl time.Duration, members ...discovery.Server) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.ttl, z.srv, z.hosts, z.err = ttl, nil, map[string][]netip.Addr{}, nil
	for _, m := range members {
		host := m.ID.Label() + ".rl.test."
		for _, a := range m.Addrs {
			z.hosts[host] = append(z.hosts[host], a.Addr())
		}
		z.srv = append(z.srv, discovery.SRV{Target: host, Port: m.Addrs[0].Port()})
	}
}

func (z *zone) fail(err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.err = err
}

// block makes lookups hang until release is called.
func (z *zone) block() (release func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	hold := make(chan struct{})
	z.hold = hold
	return func() { close(hold) }
}

func (z *zone) count() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.lookups
}

func (z *zone) enter(ctx context.Context) error {
	z.mu.Lock()
	z.lookups++
	hold := z.hold
	z.mu.Unlock()
	if hold == nil {
		return nil
	}
	select {
	case <-hold:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (z *zone) LookupSRV(ctx context.Context, name string) ([]discovery.SRV, time.Duration, error) {
	if err := z.enter(ctx); err != nil {
		return nil, 0, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err != nil {
		return nil, 0, z.err
	}
	if name != "_ratelimitly._udp.c-7.rl.test" {
		return nil, 0, fmt.Errorf("no such name: %s", name)
	}
	return slices.Clone(z.srv), z.ttl, nil
}

func (z *zone) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if err := z.enter(ctx); err != nil {
		return nil, 0, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err != nil {
		return nil, 0, z.err
	}
	addrs := z.hosts[host+"."]
	if len(addrs) == 0 {
		return nil, 0, fmt.Errorf("no such host: %s", host)
	}
	return slices.Clone(addrs), z.ttl, nil
}
