package discovery

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestLookupAddrs(t *testing.T) {
	const host = "s-5.rl.test"
	type reply struct {
		rcode     int
		answer    []string
		authority []string
	}
	v4 := reply{answer: []string{host + ". 60 IN A 192.0.2.2", host + ". 50 IN A 192.0.2.1", host + ". 50 IN A 192.0.2.1"}}
	v6 := reply{answer: []string{host + ". 20 IN AAAA 2001:db8::1"}}
	none := reply{authority: []string{soa}}
	noName := reply{rcode: dns.RcodeNameError, authority: []string{soa}}
	broken := reply{rcode: dns.RcodeServerFailure}
	tests := []struct {
		name    string
		a, aaaa reply
		want    string
		ttl     time.Duration
		text    string // of the error
	}{
		{"both", v4, v6, "192.0.2.1 192.0.2.2 2001:db8::1", 20 * time.Second, ""},
		{"IPv4 only", v4, none, "192.0.2.1 192.0.2.2", 50 * time.Second, ""},
		{"IPv6 only", none, v6, "2001:db8::1", 20 * time.Second, ""},
		{"IPv6 broken: soon again", v4, broken, "192.0.2.1 192.0.2.2", 10 * time.Second, "AAAA " + host},
		{"IPv4 broken: soon again", broken, v6, "2001:db8::1", 10 * time.Second, "A " + host},
		{"broken, and known for less", reply{answer: []string{host + ". 5 IN A 192.0.2.1"}}, broken, "192.0.2.1", 5 * time.Second, "SERVFAIL"},
		{"nothing", none, none, "", 0, "no such record"},
		{"no name", noName, noName, "", 0, "NXDOMAIN"},
		{"no name, told by one", none, noName, "", 0, "NXDOMAIN"},
		{"nothing and broken", none, broken, "", 0, "SERVFAIL"},
		{"broken", broken, broken, "", 0, "SERVFAIL"},
		{"mapped", reply{answer: []string{host + ". 5 IN A 192.0.2.1"}}, reply{answer: []string{host + ". 5 IN AAAA ::ffff:192.0.2.1"}}, "192.0.2.1", 5 * time.Second, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := fakeServer(t, answering(func(q dns.Question) (int, []string, []string) {
				r := tt.a
				if q.Qtype == dns.TypeAAAA {
					r = tt.aaaa
				}
				return r.rcode, r.answer, r.authority
			}))
			got, ttl, err := resolverAt(addr).LookupAddrs(t.Context(), host)
			if tt.text != "" {
				if err == nil || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), addr) {
					t.Fatalf("error %v does not say %q and %q", err, tt.text, addr)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			var partial *PartialError
			if errors.As(err, &partial) != (err != nil && tt.want != "") {
				t.Fatalf("got %v beside the error %v", got, err)
			}
			if partial != nil && (partial.Network == "ip4") != strings.Contains(err.Error(), " A ") {
				t.Errorf("%q failed, because of %v", partial.Network, err)
			}
			if text(got) != tt.want || ttl != tt.ttl {
				t.Fatalf("got %v, %v; want %v, %v", got, ttl, tt.want, tt.ttl)
			}
		})
	}
}

func text(addrs []netip.Addr) string {
	var s []string
	for _, a := range addrs {
		s = append(s, a.String())
	}
	return strings.Join(s, " ")
}

func TestAddressFamiliesAreAskedConcurrently(t *testing.T) {
	// Neither question is answered before both have arrived.
	var both sync.WaitGroup
	both.Add(2)
	reply := answering(func(q dns.Question) (int, []string, []string) {
		if q.Qtype == dns.TypeA {
			return 0, []string{q.Name + " 5 IN A 192.0.2.1"}, nil
		}
		return 0, []string{q.Name + " 5 IN AAAA 2001:db8::1"}, nil
	})
	addr := fakeServer(t, func(q *dns.Msg, tcp bool) [][]byte {
		both.Done()
		both.Wait()
		return reply(q, tcp)
	})
	got, _, err := resolverAt(addr).LookupAddrs(t.Context(), "h.test")
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestSilentFamilyDoesNotHoldUpTheOther(t *testing.T) {
	addr := fakeServer(t, func(q *dns.Msg, tcp bool) [][]byte {
		if q.Question[0].Qtype == dns.TypeAAAA {
			return nil
		}
		return answering(func(q dns.Question) (int, []string, []string) {
			return 0, []string{q.Name + " 60 IN A 192.0.2.1"}, nil
		})(q, tcp)
	})
	r := resolverAt(addr) // waits an hour for a server
	r.grace = time.Millisecond
	got, ttl, err := r.LookupAddrs(t.Context(), "h.test")
	var partial *PartialError
	if !errors.As(err, &partial) || partial.Network != "ip6" || !errors.Is(err, context.Canceled) ||
		!slices.Equal(got, []netip.Addr{netip.MustParseAddr("192.0.2.1")}) || ttl != partialTTL {
		t.Fatalf("got %v, %v, %v", got, ttl, err)
	}
}
