package weir

import (
	"context"
	"crypto/rand"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/server"
)

// wallClock is a server's clock in a world.
type wallClock struct{ w *world }

func (c wallClock) Now() limiter.Time {
	now := c.w.clock()
	return limiter.Time{Mono: int64(now.Mono), Wall: uint64(now.Wall)}
}

// startServer runs a real r-server at a host of the world until it is closed.
func (w *world) startServer(h *udp.NetworkHost, addr netip.Addr) (s *server.Server, kill func()) {
	w.t.Helper()
	s, err := server.New(server.Config{
		Listen:  []string{netip.AddrPortFrom(addr, 29292).String()},
		Tenants: []server.Tenant{{Keys: []apikey.Key{w.key}, InsecureAuth: true}},
		Clock:   wallClock{w},
		Entropy: rand.Reader,
		Stack:   h,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := s.Run(context.Background()); err != nil {
			w.t.Errorf("a server ended: %v", err)
		}
	})
	return s, func() {
		s.Close()
		ended.Wait()
	}
}

// The oldest server is killed and replaced by a younger one, in DNS too, again
// and again under load: not one request fails.
func TestServersKilledUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		z := new(zone)
		type member struct {
			discovery.Server
			host *udp.NetworkHost
			kill func()
		}
		var members []member // oldest first
		tell := func() {
			var known []discovery.Server
			for _, m := range members {
				known = append(known, m.Server)
			}
			z.set(2*time.Second, known...)
		}
		start := func(h *udp.NetworkHost, addr netip.Addr) {
			s, kill := w.startServer(h, addr)
			members = append(members, member{discovery.Server{ID: s.ID(), Addrs: s.Addrs()}, h, kill})
			pass(time.Second) // so that the next one is younger
		}
		for i := range 3 {
			addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
			start(w.net.Host(addr), addr)
		}
		tell()
		c := w.discovered(z)

		ctx, cancel := context.WithCancel(context.Background())
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for ctx.Err() == nil {
					if d, err := c.Acquire(context.Background(), Request{Resources: []Resource{plenty.Take(1)}}); err != nil || !d.Granted() {
						t.Errorf("%v, %v", d, err)
					}
					pass(10 * time.Millisecond)
				}
			})
		}
		for range 4 {
			pass(500 * time.Millisecond)
			oldest := members[0]
			oldest.kill()
			pass(time.Second) // known to all, dead
			members = members[1:]
			start(oldest.host, oldest.Addrs[0].Addr())
			tell()
			pass(3 * time.Second)
		}
		cancel()
		callers.Wait()
		for _, m := range members {
			m.kill()
		}
		if known := c.Servers(); len(known) != 3 || known[0].ID != members[0].ID {
			t.Errorf("known at the end: %v", known)
		}
	})
}

var plenty = Bucket("plenty", 1<<30, time.Minute)
