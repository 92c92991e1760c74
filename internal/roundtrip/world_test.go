package roundtrip

import (
	"context"
	"crypto/rand"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// today is what the clocks of a world show at first: virtual time begins before the first
// server ID.
var today = time.Date(2050, time.January, 1, 0, 0, 0, 0, time.UTC)

// now is the time of a world.
func now() time.Time {
	const begin = 946684800 // of virtual time, 2000-01-01
	return time.Now().Add(today.Sub(time.Unix(begin, 0)))
}

type clock struct{}

func (clock) Now() limiter.Time {
	return limiter.Time{Mono: int64(now().Sub(today)), Wall: uint64(now().UnixMilli())}
}

// world is a network in memory, under virtual time, with a machine and real r-servers.
type world struct {
	t    *testing.T
	net  *udp.Network
	host *udp.NetworkHost
	key  apikey.Key
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: udp.NewNetwork(), key: newKey(t)}
		w.host = w.net.Host(netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("fd00::1:1"))
		test(t, w)
	})
}

func newKey(t *testing.T) apikey.Key {
	t.Helper()
	q := apikey.DefaultQuotas()
	q.DedupTTL = 2000
	k, err := apikey.New(apikey.AuthAES, 7, q, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// serve runs a real r-server of the world's key.
func (w *world) serve(addrs ...string) discovery.Server {
	w.t.Helper()
	var ips []netip.Addr
	for _, a := range addrs {
		ips = append(ips, netip.MustParseAddrPort(a).Addr())
	}
	s, err := server.New(server.Config{
		Listen: addrs, Tenants: []server.Tenant{{Keys: []apikey.Key{w.key}}},
		Drain: server.NoDrain, Clock: clock{}, Stack: w.net.Host(ips...), DedupTTLCap: 2 * time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		s.Close()
		running.Wait()
	})
	return discovery.Server{ID: s.ID(), Addrs: s.Addrs()}
}

func (w *world) config(servers ...discovery.Server) Config {
	return Config{Key: w.key, Servers: servers, WarmUp: time.Second, For: 10 * time.Second, Stack: w.host, Now: now}
}

func (w *world) run(cfg Config) *Result {
	w.t.Helper()
	r, err := Run(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// up reports whether a packet goes to a server.
func up(p udp.Packet) bool { return p.To.Port() == 29292 }
