package weir

import (
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	scripted "github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a network in memory with a client's machine and servers, for tests
// under virtual time.
type world struct {
	t       *testing.T
	net     *udp.Network
	host    *udp.NetworkHost // the client's
	stack   udp.Stack        // instead of host, if not nil
	key     apikey.Key
	clock   func() core.Time
	servers []*responder // oldest first
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// today is what the wall clocks of a world show at first: virtual time begins before
// the first server ID, and before this program was built.
var today = time.Date(2050, time.January, 1, 0, 0, 0, 0, time.UTC)

// newWorld has n servers, of IDs 1000, 2000, … at 10.0.0.1, 10.0.0.2, …
func newWorld(t *testing.T, n int) *world {
	w := &world{
		t:     t,
		net:   udp.NewNetwork(),
		key:   testKey(t, apikey.AuthAES),
		clock: systemClock(),
	}
	w.clock = w.stepped(today.UnixMilli() - time.Now().UnixMilli())
	w.host = w.net.Host(netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("fd00::1:1"))
	for i := range n {
		w.addServer(i + 1)
	}
	return w
}

// stepped returns the world's clock with the wall clock off by some ms.
func (w *world) stepped(ms int64) func() core.Time {
	clock := w.clock
	return func() core.Time {
		now := clock()
		now.Wall += ms
		return now
	}
}

func (w *world) addServer(i int) *responder {
	addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
	r := scripted.Start(w.t, w.net.Host(addr), netip.AddrPortFrom(addr, 29292).String(), ident.ServerID(1000*i), w.key)
	w.servers = append(w.servers, r)
	return r
}

// client returns a client of the world that knows all servers, unless configure
// says otherwise. It ends with the test.
func (w *world) client(configure ...func(*Config)) *Client {
	w.t.Helper()
	cfg := Config{Key: w.key}
	for _, f := range configure {
		f(&cfg)
	}
	if cfg.Zone == "" && cfg.Domain == "" && cfg.Servers == nil {
		cfg.Servers = w.members()
	}
	var stack udp.Stack = w.host
	if w.stack != nil {
		stack = w.stack
	}
	c, err := newClient(cfg, platform{stack: stack, clock: w.clock, entropy: rand.Reader})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}
