package weir

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	scripted "github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/internal/udp"
)

// Whatever families there are and whichever of them works, decisions come as long
// as one does, and say from whom; ErrIO is for when none does.
func TestFamilies(t *testing.T) {
	const older, younger, dual = 500, 1000, 700 // reached by IPv6, by IPv4, by both
	tests := map[string]struct {
		servers []ident.ServerID
		broken4 bool // sends fail at once, as without a route
		broken6 bool
		host    []string // the client's addresses, nil for both families
		want    ident.ServerID
		err     error
	}{
		"IPv4 only":                        {servers: []ident.ServerID{younger}, want: younger},
		"IPv6 only":                        {servers: []ident.ServerID{older}, want: older},
		"both":                             {servers: []ident.ServerID{older, younger}, want: older},
		"both, no route for IPv6":          {servers: []ident.ServerID{older, younger}, broken6: true, want: younger},
		"both, no route for IPv4":          {servers: []ident.ServerID{older, younger}, broken4: true, want: older},
		"both, no IPv6 on the machine":     {servers: []ident.ServerID{older, younger}, host: []string{"10.0.1.2"}, want: younger},
		"both, no IPv4 on the machine":     {servers: []ident.ServerID{older, younger}, host: []string{"fd00::1:2"}, want: older},
		"one server with both":             {servers: []ident.ServerID{dual}, want: dual},
		"one with both, no route for IPv6": {servers: []ident.ServerID{dual}, broken6: true, want: dual},
		"one with both, no route for IPv4": {servers: []ident.ServerID{dual}, broken4: true, want: dual},
		"no route at all":                  {servers: []ident.ServerID{older, dual, younger}, broken4: true, broken6: true, err: syscall.ENETUNREACH},
		"IPv6 only, no route":              {servers: []ident.ServerID{older}, broken6: true, err: syscall.ENETUNREACH},
		"IPv6 only, none on the machine":   {servers: []ident.ServerID{older}, host: []string{"10.0.1.2"}, err: udp.ErrNotLocal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 0)
				var members []discovery.Server
				for _, id := range tt.servers {
					members = append(members, w.reachable(id, id != older, id != younger))
				}
				w.net.SetLink(func(p udp.Packet) udp.Fate {
					if p.To.Port() == 29292 && (tt.broken4 && p.To.Addr().Is4() || tt.broken6 && p.To.Addr().Is6()) {
						return udp.Fate{Err: syscall.ENETUNREACH}
					}
					return udp.Fate{}
				})
				if tt.host != nil {
					w.host = w.net.Host(addrs(tt.host)...)
				}
				c := w.client(func(cfg *Config) { cfg.Servers = members })
				for range 3 {
					d, err := c.Acquire(context.Background(), oneToken())
					if tt.err != nil {
						if !errors.Is(err, ErrIO) || !errors.Is(err, tt.err) {
							t.Errorf("%v, %v", d, err)
						}
						continue
					}
					// The oldest that can be asked decides, after the time that an
					// older one is waited for.
					if err != nil || d.Server() != tt.want {
						t.Errorf("%v, %v", d, err)
					}
				}
				if err := c.Report(inventory.Took(1)); err != nil {
					t.Errorf("Report: %v", err)
				}
				if s := c.Stats(); s.InFlight != 0 || tt.err != nil && s.Outcomes[core.SendFailed] != 3 {
					t.Errorf("%d in flight; outcomes %v", s.InFlight, s.Outcomes)
				}
			})
		})
	}
}

// reachable starts a server of this ID with an address of each family wanted.
func (w *world) reachable(id ident.ServerID, v4, v6 bool) discovery.Server {
	member := discovery.Server{ID: id}
	var own []netip.Addr
	if v4 {
		own = append(own, netip.AddrFrom4([4]byte{10, 1, byte(id >> 8), byte(id)}))
	}
	if v6 {
		own = append(own, netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(id >> 8), 15: byte(id)}))
	}
	h := w.net.Host(own...)
	for _, a := range own {
		at := netip.AddrPortFrom(a, 29292)
		scripted.Start(w.t, h, at.String(), id, w.key)
		member.Addrs = append(member.Addrs, at)
	}
	return member
}

func addrs(text []string) []netip.Addr {
	var as []netip.Addr
	for _, s := range text {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

// A socket that could not be opened is left alone for a second, not for good.
func TestFamilyThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.addServer6()
		late := &lateFamily{NetworkHost: w.host}
		w.stack = late
		c := w.client(func(cfg *Config) { cfg.Servers = memberList(w.servers[1]) })
		for range 20 {
			if _, err := c.Acquire(context.Background(), oneToken()); !errors.Is(err, ErrIO) || !errors.Is(err, syscall.EAFNOSUPPORT) {
				t.Error(err)
			}
		}
		if late.tried != 1 {
			t.Errorf("a socket was tried %d times within a second", late.tried)
		}
		late.there = true
		pass(openRetry)
		if d := acquire(t, c); d.Server() != 9000 {
			t.Errorf("%v", d)
		}
	})
}

// lateFamily is a host without IPv6, until it is there.
type lateFamily struct {
	*udp.NetworkHost
	there bool
	tried int
}

func (h *lateFamily) Listen(addr netip.AddrPort, o udp.Options) (udp.Conn, error) {
	h.tried++
	if addr.Addr().Is6() && !h.there {
		return nil, syscall.EAFNOSUPPORT
	}
	return h.NetworkHost.Listen(addr, o)
}
