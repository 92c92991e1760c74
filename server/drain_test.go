package server

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// In virtual time: after it is asked to end, a server is not ready, answers for
// exactly its drain time, and ends.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name  string
		drain time.Duration
		want  time.Duration
	}{
		{"asked for", 12 * time.Second, 12 * time.Second},
		{"without DNS there is nothing to leave", 0, 0},
		{"none", NoDrain, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Virtual time begins in 2000, before any server could.
				<-time.After(time.Until(time.UnixMilli(testTime)))
				key := newKey(t, apikey.AuthAES, 7)
				network := udp.NewNetwork()
				here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
				s, err := New(Config{
					Tenants: []Tenant{{Keys: []apikey.Key{key}, InsecureAuth: true}},
					Listen:  []string{"10.0.0.1:29292"}, Stack: network.Host(here), Drain: c.drain,
				})
				if err != nil {
					t.Fatal(err)
				}
				conn, err := network.Host(there).Listen(netip.AddrPortFrom(there, 1024), udp.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				client := newClient(t, key)
				answered := func() bool {
					client.next()
					client.header.Timestamp = uint64(time.Now().UnixMilli())
					b := client.request(checkout(0))
					if _, err := conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: s.Addrs()[0]}}); err != nil {
						t.Fatal(err)
					}
					answer := make(chan struct{})
					go func() {
						if _, err := conn.Read([]udp.Datagram{{Buf: make([]byte, wire.MaxDatagram)}}); err == nil {
							close(answer)
						}
					}()
					synctest.Wait()
					select {
					case <-answer:
						return true
					default:
						return false
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Run(ctx) }()
				<-time.After(time.Second)
				if !s.ready.Load() || !answered() {
					t.Error("not ready, or no answer")
				}
				asked := time.Now()
				cancel()
				if c.want > 0 {
					<-time.After(c.want - time.Millisecond)
					if s.ready.Load() {
						t.Error("ready while draining")
					}
					if !answered() {
						t.Error("no answer while draining")
					}
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(asked); took != c.want {
					t.Errorf("it took %v to end, want %v", took, c.want)
				}
				if answered() {
					t.Error("answered after the end")
				}
			})
		})
	}
}

func TestDefaultDrain(t *testing.T) {
	base := Config{Tenants: []Tenant{{}}, Listen: []string{"127.0.0.1:0"}}
	withDNS := base
	withDNS.DNS, withDNS.Zone, withDNS.TTL = "127.0.0.1:0", "rl.test", 10*time.Second
	without := withDNS
	without.Drain = NoDrain
	for _, c := range []struct {
		config Config
		want   time.Duration
	}{{base, 0}, {withDNS, 22 * time.Second}, {without, 0}} {
		s, err := c.config.check()
		if err != nil {
			t.Fatal(err)
		}
		if s.Drain != c.want {
			t.Errorf("drain is %v, want %v", s.Drain, c.want)
		}
	}
}

// Close ends a server that drains.
func TestCloseWhileDraining(t *testing.T) {
	s := start(t, Config{Tenants: []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}, Drain: time.Hour})
	s.cancel()
	s.log.await(t, "msg=draining", 1)
	s.Close()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
}

// lookup asks a server's DNS over UDP.
func lookup(t *testing.T, s *running, name string, kind uint16) []dns.RR {
	t.Helper()
	q := new(dns.Msg).SetQuestion(name, kind)
	c := dns.Client{Timeout: patience}
	r, _, err := c.ExchangeContext(t.Context(), q, s.DNSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return r.Answer
}

// The embedded DNS has the server under the key ID of each tenant, follows the
// tenants, and has it no more once it is asked to end.
func TestDNS(t *testing.T) {
	tenants := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}, {Keys: []apikey.Key{newKey(t, apikey.AuthAES, 8)}}}
	s := start(t, Config{Tenants: tenants[:1], DNS: "127.0.0.1:0", Zone: "RL.test", TTL: 7 * time.Second, Drain: time.Hour})
	srv := lookup(t, s, "_ratelimitly._udp.c-7.rl.test.", dns.TypeSRV)
	if len(srv) != 1 {
		t.Fatalf("SRV records: %v", srv)
	}
	record := srv[0].(*dns.SRV)
	if record.Target != s.ID().Label()+".rl.test." || record.Port != s.Addrs()[0].Port() || record.Hdr.Ttl != 7 {
		t.Errorf("the SRV record is %v", record)
	}
	a := lookup(t, s, record.Target, dns.TypeA)
	if len(a) != 1 || a[0].(*dns.A).A.String() != "127.0.0.1" {
		t.Errorf("A records: %v", a)
	}
	ns := lookup(t, s, "rl.test.", dns.TypeNS)
	if len(ns) != 1 {
		t.Fatalf("NS records: %v", ns)
	}
	if a := lookup(t, s, ns[0].(*dns.NS).Ns, dns.TypeA); len(a) != 1 || a[0].(*dns.A).A.String() != "127.0.0.1" {
		t.Errorf("the zone's name server has %v", a)
	}
	if srv := lookup(t, s, "_ratelimitly._udp.c-8.rl.test.", dns.TypeSRV); len(srv) != 0 {
		t.Errorf("a key ID without a tenant has %v", srv)
	}
	if err := s.SetTenants(tenants[1:]); err != nil {
		t.Fatal(err)
	}
	if srv := lookup(t, s, "_ratelimitly._udp.c-8.rl.test.", dns.TypeSRV); len(srv) != 1 {
		t.Errorf("the new tenant has %v", srv)
	}
	if srv := lookup(t, s, "_ratelimitly._udp.c-7.rl.test.", dns.TypeSRV); len(srv) != 0 {
		t.Errorf("the removed tenant has %v", srv)
	}
	s.cancel()
	s.log.await(t, "msg=draining", 1)
	if srv := lookup(t, s, "_ratelimitly._udp.c-8.rl.test.", dns.TypeSRV); len(srv) != 0 {
		t.Errorf("a server that ends has %v", srv)
	}
}

// Without any tenant no key ID has a server.
func TestDNSWithoutTenants(t *testing.T) {
	s := start(t, Config{TenantsFile: tempFile(t, "tenants: []"), DNS: "127.0.0.1:0", Zone: "rl.test"})
	if srv := lookup(t, s, "_ratelimitly._udp.c-7.rl.test.", dns.TypeSRV); len(srv) != 0 {
		t.Errorf("there is %v", srv)
	}
}

func TestAdvertise(t *testing.T) {
	tenants := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}
	s := start(t, Config{Tenants: tenants, Listen: []string{"0.0.0.0:0"}, DNS: "127.0.0.1:0", Zone: "rl.test", Advertise: []string{"192.0.2.9", "2001:db8::9"}})
	srv := lookup(t, s, "_ratelimitly._udp.c-7.rl.test.", dns.TypeSRV)
	if len(srv) != 1 || srv[0].(*dns.SRV).Port != s.Addrs()[0].Port() {
		t.Fatalf("SRV records: %v", srv)
	}
	target := srv[0].(*dns.SRV).Target
	if a := lookup(t, s, target, dns.TypeA); len(a) != 1 || a[0].(*dns.A).A.String() != "192.0.2.9" {
		t.Errorf("A records: %v", a)
	}
	if a := lookup(t, s, target, dns.TypeAAAA); len(a) != 1 || a[0].(*dns.AAAA).AAAA.String() != "2001:db8::9" {
		t.Errorf("AAAA records: %v", a)
	}
}

// The zone's name server is where DNS is asked, or where clients reach the machine.
func TestNameServer(t *testing.T) {
	reached := []netip.AddrPort{
		netip.MustParseAddrPort("192.0.2.9:1"), netip.MustParseAddrPort("192.0.2.9:2"), netip.MustParseAddrPort("[2001:db8::9]:1"),
	}
	for dns, want := range map[string]string{
		"127.0.0.1:53":     "[127.0.0.1]",
		"[::1]:53":         "[::1]",
		"[fe80::1%eth0]:1": "[]",
		"0.0.0.0:53":       "[192.0.2.9 2001:db8::9]",
		"[::]:53":          "[192.0.2.9 2001:db8::9]",
	} {
		s := &Server{settings: &settings{dns: netip.MustParseAddrPort(dns), advertise: reached}}
		if got := fmt.Sprint(s.nameServer()); got != want {
			t.Errorf("%s: %s, want %s", dns, got, want)
		}
	}
}
