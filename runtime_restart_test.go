package weir

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/server"
)

// fleet is real r-servers in a world, and what DNS says of them.
type fleet struct {
	w       *world
	zone    *zone
	ttl     time.Duration
	members []fleetMember // oldest first
	hosts   byte
}

type fleetMember struct {
	*server.Server
	host *udp.NetworkHost
	addr netip.Addr
	kill func()
}

func newFleet(w *world, n int, ttl time.Duration) *fleet {
	f := &fleet{w: w, zone: new(zone), ttl: ttl}
	for range n {
		f.add()
	}
	f.publish()
	return f
}

// add starts a server on a new host.
func (f *fleet) add() {
	f.hosts++
	addr := netip.AddrFrom4([4]byte{10, 0, 2, f.hosts})
	f.start(f.w.net.Host(addr), addr)
}

// start starts a server, the youngest.
func (f *fleet) start(h *udp.NetworkHost, addr netip.Addr) {
	s, kill := f.w.startServer(h, addr)
	f.members = append(f.members, fleetMember{s, h, addr, kill})
	pass(time.Second) // so that the next one is younger, and what is asked now not stale
}

// kill kills the oldest server and returns what it was.
func (f *fleet) kill() fleetMember {
	oldest := f.members[0]
	oldest.kill()
	f.members = f.members[1:]
	return oldest
}

func (f *fleet) publish() {
	var known []discovery.Server
	for _, m := range f.members {
		known = append(known, discovery.Server{ID: m.ID(), Addrs: m.Addrs()})
	}
	f.zone.set(f.ttl, known...)
}

func (f *fleet) end() {
	for len(f.members) > 0 {
		f.kill()
	}
}

// A server that restarted has another ID and no memory. While DNS names the old
// one, what it says is counted as a stranger's and decides nothing; after the TTL
// it is asked.
func TestRestartedServerIsAStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 5 * time.Second
		w := newWorld(t, 0)
		f := newFleet(w, 1, ttl)
		defer f.end()
		c := w.discovered(f.zone)
		two := Bucket("two an hour", 2, time.Hour)
		ask := func() (Decision, error) {
			return c.Acquire(context.Background(), Request{Resources: []Resource{two.Take(1)}})
		}
		for _, want := range []bool{true, true, false} {
			if d, err := ask(); err != nil || d.Granted() != want {
				t.Fatalf("%v, %v", d, err)
			}
		}
		old := f.kill()
		f.start(old.host, old.addr)
		before := c.Stats().Datagrams[core.DatagramStranger]
		_, err := ask()
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || timeout.Seen.Datagrams[core.DatagramStranger] != 2 || !strings.Contains(err.Error(), "restarted server") {
			t.Errorf("while DNS names the old one: %v", err)
		}
		if n := c.Stats().Datagrams[core.DatagramStranger] - before; n != 2 {
			t.Errorf("%d answers of a stranger counted", n)
		}
		f.publish()
		// The timeout had the servers looked up, maybe just before the new one was published, so that
		// the TTL began as late as that.
		pass(ttl + time.Second)
		// What was asked of the stranger was executed there: of its two tokens one
		// is gone, and nothing of what its predecessor knew is left.
		d, err := ask()
		if err != nil || !d.Granted() || d.Server() != f.members[0].ID() || d.Resources()[0].ActualRate != 2 {
			t.Errorf("after the TTL: %v, %v; %v", d, err, d.Resources())
		}
	})
}

// Under load the oldest server is killed, and comes back at its address or at
// another one, before DNS says so or as it does, or never. While another one
// answers nothing is lost, and nobody decides whom DNS has not named.
func TestServersReplacedUnderLoad(t *testing.T) {
	tests := map[string]struct {
		elsewhere bool
		lag       time.Duration // from the restart to DNS
		gone      bool          // it does not come back
	}{
		"same address":                   {},
		"same address, DNS late":         {lag: 3 * time.Second},
		"another address":                {elsewhere: true},
		"another address, DNS late":      {elsewhere: true, lag: 3 * time.Second},
		"gone, and another in its place": {gone: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 0)
				f := newFleet(w, 3, 2*time.Second)
				defer f.end()
				c := w.discovered(f.zone)
				l := startLoad(t, c)
				for range 3 {
					l.allow(f.members)
					pass(500 * time.Millisecond)
					old := f.kill()
					pass(time.Second)
					switch {
					case tt.gone:
						f.publish()
						pass(3 * time.Second)
						f.add()
					case tt.elsewhere:
						f.add()
					default:
						f.start(old.host, old.addr)
					}
					pass(tt.lag)
					f.publish()
					pass(3 * time.Second) // the TTL has passed
					if known := c.Servers(); len(known) != 3 || known[2].ID != f.members[2].ID() {
						t.Errorf("known: %v", known)
					}
				}
				if n := l.end(); n < 500 {
					t.Errorf("%d decisions", n)
				}
				if n := c.Stats().Datagrams[core.DatagramStranger]; (n > 0) == (tt.elsewhere || tt.gone) {
					t.Errorf("%d answers of strangers", n)
				}
			})
		})
	}
}

// load is callers that accept no error and no decision of somebody unknown.
type load struct {
	t       *testing.T
	stop    context.CancelFunc
	callers sync.WaitGroup

	mu        sync.Mutex
	allowed   map[ident.ServerID]bool
	decisions int
}

func startLoad(t *testing.T, c *Client) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: t, stop: cancel}
	for range 8 {
		l.callers.Go(func() {
			for ctx.Err() == nil {
				d, err := c.Acquire(context.Background(), Request{Resources: []Resource{plenty.Take(1)}})
				l.mu.Lock()
				l.decisions++
				if err != nil || !d.Granted() || l.allowed != nil && !l.allowed[d.Server()] {
					t.Errorf("%v, %v", d, err)
				}
				l.mu.Unlock()
				pass(10 * time.Millisecond)
			}
		})
	}
	return l
}

// allow says who may decide from now on: those that DNS has named.
func (l *load) allow(members []fleetMember) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.allowed = map[ident.ServerID]bool{}
	for _, m := range members {
		l.allowed[m.ID()] = true
	}
}

func (l *load) end() int {
	l.stop()
	l.callers.Wait()
	return l.decisions
}

// A resolver that is dead for a long time is asked now and then, whatever is
// asked of the client meanwhile; both with servers known and without.
func TestDeadResolverIsAskedAtLeisure(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w, z := discoverable(t, 1, 2*time.Second)
			if !known {
				z.fail(errNameServer)
			}
			c := w.discovered(z)
			if known {
				acquire(t, c)
				z.fail(errNameServer)
			}
			before := z.count()
			const minutes = 30
			for range minutes * 60 * 2 {
				_, err := c.Acquire(context.Background(), oneToken())
				if known && err != nil || !known && (!errors.Is(err, ErrNoServers) || !errors.Is(err, errNameServer)) {
					t.Fatal(err)
				}
				if err := c.Report(inventory.Took(1)); known && err != nil || !known && !errors.Is(err, ErrNoServers) {
					t.Fatal(err)
				}
				pass(500 * time.Millisecond)
			}
			n := z.count() - before
			// Without servers a forced refresh may begin each second; with some, failures
			// back off to five minutes or so.
			if low, high := minutes/10, minutes*2; known && (n < low || n > high) {
				t.Errorf("with servers known: %d lookups in %d minutes", n, minutes)
			}
			if low, high := minutes*60/2, minutes*60; !known && (n < low || n > high) {
				t.Errorf("without: %d lookups in %d minutes", n, minutes)
			}
			z.set(2*time.Second, w.members()...)
			pass(8 * time.Minute) // longer than any pause
			acquire(t, c)
			if s := c.Servers(); len(s) != 1 {
				t.Errorf("servers %v", s)
			}
			c.mu.Lock()
			if n := len(c.lookups); n > 1 {
				t.Errorf("%d lookups are remembered, most of them over", n)
			}
			c.mu.Unlock()
		})
	}
}
