package session

import (
	"context"
	"crypto/rand"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// today is what the wall clocks of a world show at first: virtual time begins
// before the first server ID.
var today = time.Date(2050, time.January, 1, 0, 0, 0, 0, time.UTC)

const (
	ms     = time.Millisecond
	domain = "c-7.rl.test"
)

var (
	checkout  = weir.Bucket("checkout", 100, time.Second)
	inventory = weir.Tracker("inventory", weir.TrackerOptions{TTL: 10 * time.Second, MaxSamples: 100, MinSamples: 5})
)

func oneToken() weir.Request { return weir.Request{Resources: []weir.Resource{checkout.Take(1)}} }

// world is a network in memory with a session's machine and servers, for tests
// under virtual time.
type world struct {
	t       *testing.T
	net     *udp.Network
	host    *udp.NetworkHost // the session's
	stack   udp.Stack
	key     apikey.Key
	zone    *responder.Zone
	servers []*responder.Responder // oldest first
	sent    atomic.Int64           // packets of anybody's
}

func newKey(t testing.TB, id uint64) apikey.Key {
	t.Helper()
	key, err := apikey.New(apikey.AuthAES, id, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newWorld has n servers, of IDs 1000, 2000, … at 10.0.0.1, 10.0.0.2, …
func newWorld(t *testing.T, n int) *world {
	w := &world{t: t, net: udp.NewNetwork(), key: newKey(t, 7), zone: new(responder.Zone)}
	w.host = w.net.Host(netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("fd00::1:1"))
	w.stack = w.host
	for i := range n {
		w.addServer(ident.ServerID(1000*(i+1)), netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
	}
	w.net.SetLink(func(udp.Packet) udp.Fate {
		w.sent.Add(1)
		return udp.Fate{}
	})
	return w
}

func (w *world) addServer(id ident.ServerID, at netip.Addr) *responder.Responder {
	r := responder.Start(w.t, w.net.Host(at), netip.AddrPortFrom(at, 29292).String(), id, w.key)
	w.servers = append(w.servers, r)
	return r
}

// silence stops servers from answering.
func (w *world) silence(servers ...int) {
	for _, i := range servers {
		w.servers[i].Do(func(e *responder.Exchange) { e.Silent = true })
	}
}

// delay makes a server answer late.
func (w *world) delay(server int, d time.Duration) {
	w.servers[server].Do(func(e *responder.Exchange) { e.Delay = d })
}

func (w *world) members() []discovery.Server {
	var members []discovery.Server
	for _, s := range w.servers {
		members = append(members, s.Member())
	}
	return members
}

// session returns the first state of a session that knows all servers, unless
// configure says otherwise. Whatever it opens is closed by the test, or seen to
// be open.
func (w *world) session(configure ...func(*Config)) *holder {
	w.t.Helper()
	cfg := Config{Stack: w.stack}
	for _, f := range configure {
		f(&cfg)
	}
	if cfg.Domain == "" && cfg.Zone == "" {
		cfg.Servers = w.members()
	}
	origin := time.Now()
	clock := func() core.Time {
		passed := time.Since(origin)
		return core.Time{Mono: passed, Wall: today.UnixMilli() + passed.Milliseconds()}
	}
	s, err := newState(cfg, clock, rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	h := &holder{State: s, w: w}
	w.t.Cleanup(func() {
		if _, err := Close(h.State); err != nil {
			w.t.Error(err)
		}
	})
	return h
}

// discovered is for a session that finds its servers in the world's zone.
func (w *world) discovered(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", w.zone }

// holder passes the state on from call to call.
type holder struct {
	State
	w *world
}

func (h *holder) ask(ctx context.Context, key apikey.Key, r weir.Request) (d weir.Decision, err error) {
	h.State, d, err = Execute(ctx, h.State, key, r)
	return d, err
}

// grant asks for a token and expects to get it.
func (h *holder) grant() weir.Decision {
	h.w.t.Helper()
	d, err := h.ask(context.Background(), h.w.key, oneToken())
	if err != nil || !d.Granted() {
		h.w.t.Fatalf("%v, %v", d, err)
	}
	return d
}
