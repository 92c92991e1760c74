package core

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/weirhq/weir/ident"
)

func TestSetMembershipRefuses(t *testing.T) {
	addr := netip.MustParseAddrPort
	many := func(n int) []netip.AddrPort {
		var addrs []netip.AddrPort
		for i := range n {
			addrs = append(addrs, netip.AddrPortFrom(addr("192.0.2.1:1").Addr(), uint16(i+1)))
		}
		return addrs
	}
	full := func(servers, addrs int) []Server {
		var all []Server
		for i := range servers {
			all = append(all, Server{ident.ServerID(i), many(addrs)})
		}
		return all
	}
	tests := map[string]struct {
		servers []Server
		field   string
	}{
		"a server twice":      {[]Server{{1, many(1)}, {2, many(1)}, {1, many(2)}}, "Servers"},
		"no endpoint":         {[]Server{{1, nil}}, "Servers[1].Endpoints"},
		"five endpoints":      {[]Server{{1, many(5)}}, "Servers[1].Endpoints"},
		"an endpoint twice":   {[]Server{{1, append(many(1), many(1)...)}}, "Servers[1].Endpoints"},
		"twice, once mapped":  {[]Server{{1, []netip.AddrPort{addr("192.0.2.1:1"), addr("[::ffff:192.0.2.1]:1")}}}, "Servers[1].Endpoints"},
		"port 0":              {[]Server{{1, []netip.AddrPort{addr("192.0.2.1:0")}}}, "Servers[1].Endpoints"},
		"unspecified":         {[]Server{{1, []netip.AddrPort{addr("0.0.0.0:1")}}}, "Servers[1].Endpoints"},
		"IPv6 unspecified":    {[]Server{{1, []netip.AddrPort{addr("[::]:1")}}}, "Servers[1].Endpoints"},
		"multicast":           {[]Server{{1, []netip.AddrPort{addr("239.1.1.1:1")}}}, "Servers[1].Endpoints"},
		"IPv6 multicast":      {[]Server{{1, []netip.AddrPort{addr("[ff02::1]:1")}}}, "Servers[1].Endpoints"},
		"broadcast":           {[]Server{{1, []netip.AddrPort{addr("255.255.255.255:1")}}}, "Servers[1].Endpoints"},
		"mapped broadcast":    {[]Server{{1, []netip.AddrPort{addr("[::ffff:255.255.255.255]:1")}}}, "Servers[1].Endpoints"},
		"no address":          {[]Server{{1, []netip.AddrPort{{}}}}, "Servers[1].Endpoints"},
		"17 servers":          {full(17, 1), "Servers"},
		"16 servers of 4":     {full(16, 4), ""},
		"loopback is allowed": {[]Server{{1, []netip.AddrPort{addr("127.0.0.1:1")}}}, ""},
		"nobody":              {nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestCore(t, 1, nil)
			err := c.SetMembership(at(0), tt.servers)
			if tt.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := len(c.Membership()); got != len(tt.servers) {
					t.Errorf("%d servers, want %d", got, len(tt.servers))
				}
				return
			}
			var field *FieldError
			if !errors.As(err, &field) || field.Field != tt.field {
				t.Fatalf("error %v, want one about %s", err, tt.field)
			}
			if m := c.Membership(); len(m) != 1 || m[0].ID != serverID(0) {
				t.Errorf("membership is now %+v", m)
			}
		})
	}
}

// TestSetMembershipBoundsEndpoints has a limit on all endpoints together that is
// below what the others allow.
func TestSetMembershipBoundsEndpoints(t *testing.T) {
	c := newTestCore(t, 0, func(cfg *Config) { cfg.Limits.Endpoints = 3 })
	servers := testServers(4)
	if err := c.SetMembership(at(0), servers[:3]); err != nil {
		t.Fatal(err)
	}
	var field *FieldError
	if err := c.SetMembership(at(0), servers); !errors.As(err, &field) || field.Field != "Servers" {
		t.Errorf("error %v, want one about Servers", err)
	}
	if n := len(c.Membership()); n != 3 {
		t.Errorf("%d servers are known", n)
	}
}

func TestSetMembershipOfADomain(t *testing.T) {
	c := newTestCore(t, 0, func(cfg *Config) { cfg.Domain = "c-7.example.test" })
	var field *FieldError
	if err := c.SetMembership(at(0), testServers(1)); !errors.As(err, &field) || field.Field != "Domain" {
		t.Errorf("error %v", err)
	}
	c.Close(at(0))
	if err := c.SetMembership(at(0), testServers(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v after Close", err)
	}
}

// TestMembershipIsACopy changes what was handed in and what was handed out.
func TestMembershipIsACopy(t *testing.T) {
	c := newTestCore(t, 0, nil)
	servers := testServers(2)
	servers[0], servers[1] = servers[1], servers[0]
	if err := c.SetMembership(at(0), servers); err != nil {
		t.Fatal(err)
	}
	if servers[0].ID != serverID(1) {
		t.Error("the caller's slice was sorted")
	}
	servers[0].Endpoints[0] = netip.AddrPort{}
	c.Membership()[0].Endpoints[0] = netip.AddrPort{}
	drainEvents(c)[0].Membership[0].Endpoints[0] = netip.AddrPort{}
	if !c.members.equal(newSnapshot(testServers(2))) {
		t.Errorf("membership is now %+v", c.Membership())
	}
}

// TestSixtyFourServers fills the sets of servers and endpoints to the last bit.
func TestSixtyFourServers(t *testing.T) {
	limits := Limits{Servers: 64, Addresses: 4, Endpoints: 256}
	c := newTestCore(t, 0, func(cfg *Config) { cfg.Limits = limits })
	var servers []Server
	for i := range 64 {
		s := Server{ID: serverID(i)}
		for j := range 4 {
			s.Endpoints = append(s.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), uint16(1+j)))
		}
		servers = append(servers, s)
	}
	if err := c.SetMembership(at(0), servers); err != nil {
		t.Fatal(err)
	}
	drainEvents(c)
	id, err := c.Submit(at(0), askOne())
	if err != nil {
		t.Fatal(err)
	}
	first := drainSends(c, at(0))
	if len(first) != 256 {
		t.Fatalf("%d first sends, want 256", len(first))
	}
	r := newResponder(t, c.cfg.Key)
	for i := 63; i >= 0; i-- {
		if v := c.HandleDatagram(at(ms(1)), 1, r.answer(t, first[0].Payload, serverID(i), reply{})); v != DatagramCounted {
			t.Fatalf("server %d: %v", i, v)
		}
	}
	if done := drainEvents(c); len(done) != 1 || done[0].Completion.Server != serverID(0) || done[0].Completion.Request != id {
		t.Errorf("completion %+v", done)
	}
	if sends := drainSends(c, at(ms(1))); len(sends) != 0 {
		t.Errorf("completion delivery to %d endpoints although all answered", len(sends))
	}

	if _, err = c.Submit(at(ms(2)), askOne()); err != nil {
		t.Fatal(err)
	}
	for i, s := range drainSends(c, at(ms(2))) {
		c.HandleSendFailure(at(ms(3)), s.Ref, errors.New("unreachable"))
		done := drainEvents(c)
		if (len(done) == 1) != (i == 255) {
			t.Fatalf("after %d failures: %+v", i+1, done)
		}
	}
}
