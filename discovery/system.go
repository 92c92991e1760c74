package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	resolvConf       = "/etc/resolv.conf"
	maxSystemServers = 3               // what the C library takes of resolv.conf
	maxTimeout       = 5 * time.Second // a client gives a whole refresh 10 s
	maxAttempts      = 5
)

// System returns the machine's resolver. Where there is a resolv.conf, its
// servers, timeout and attempts are used, and read anew when the file changes;
// its search list and ndots are not, since names here are absolute. Elsewhere
// (Windows) the lookups go through the standard library, which hides TTLs: they
// are 0, unknown.
//
// A resolv.conf that cannot be read is an error.
func System() (Resolver, error) {
	return fromFile(resolvConf)
}

func fromFile(path string) (Resolver, error) {
	s := &systemResolver{path: path}
	if err := s.load(); errors.Is(err, fs.ErrNotExist) {
		return netResolver{net.DefaultResolver}, nil
	} else if err != nil {
		return nil, fmt.Errorf("discovery: read the resolver configuration: %w; or name a resolver address", err)
	}
	return s, nil
}

// systemResolver follows a resolv.conf: a laptop changes networks while a
// client lives on.
type systemResolver struct {
	path string

	mu      sync.Mutex
	modTime time.Time
	size    int64
	current *dnsResolver
}

func (s *systemResolver) LookupSRV(ctx context.Context, name string) ([]SRV, time.Duration, error) {
	return s.resolver().LookupSRV(ctx, name)
}

func (s *systemResolver) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	return s.resolver().LookupAddrs(ctx, host)
}

// resolver returns the one for the file as it is now, or the last one while the
// file cannot be read (it is being replaced).
func (s *systemResolver) resolver() *dnsResolver {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path)
	if err == nil && (!info.ModTime().Equal(s.modTime) || info.Size() != s.size) {
		_ = s.load() // on failure the last good one stays
	}
	return s.current
}

func (s *systemResolver) load() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(s.path) // the library's own reading hides I/O errors
	if err != nil {
		return err
	}
	conf, err := dns.ClientConfigFromReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	s.modTime, s.size, s.current = info.ModTime(), info.Size(), fromConfig(conf)
	return nil
}

func fromConfig(conf *dns.ClientConfig) *dnsResolver {
	r := &dnsResolver{
		timeout:  min(time.Duration(conf.Timeout)*time.Second, maxTimeout),
		attempts: min(conf.Attempts, maxAttempts),
		grace:    familyGrace,
	}
	for _, ip := range conf.Servers {
		if _, err := netip.ParseAddr(ip); err != nil || len(r.servers) == maxSystemServers {
			continue
		}
		r.servers = append(r.servers, net.JoinHostPort(ip, conf.Port))
	}
	if len(r.servers) == 0 { // as resolv.conf(5) has it
		r.servers = []string{net.JoinHostPort("127.0.0.1", conf.Port), net.JoinHostPort("::1", conf.Port)}
	}
	return r
}
