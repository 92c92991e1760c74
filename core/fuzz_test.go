package core

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/internal/vectors"
	"github.com/weirhq/weir/wire"
)

// handleDatagramTarget throws bytes at a request in flight, whose identity they are
// given so that they get far. Without a key's secret anybody can write anything:
// still only an answer to the question may count.
func handleDatagramTarget(tb testing.TB) *storm.Target {
	ask := &Request{
		Guards:    []wire.Guard{guard("a", 50), guard("a", 20)},
		Resources: []wire.Resource{bucket("x"), bucket("x")},
	}
	key := testKey(tb, apikey.AuthNone)
	withKey := func(cfg *Config) { cfg.Key = key }
	// What does not count leaves the request as it was, so the next is thrown at the same one.
	var c *Core
	var id RequestID
	var before []byte
	target := storm.New("FuzzHandleDatagram", func(t testing.TB, b []byte) {
		if c == nil {
			c = newTestCore(t, 2, withKey)
			var err error
			if id, err = c.Submit(at(0), ask); err != nil {
				t.Fatal(err)
			}
		}
		if len(b) >= 28 {
			uid := c.flights.find(id).uid
			copy(b[12:], uid[:])
		}
		before = append(before[:0], b...)
		v := c.HandleDatagram(at(ms(1)), 1, b)
		if !slices.Equal(before, b) {
			t.Fatal("the datagram was changed")
		}
		if v != DatagramCounted {
			for _, ev := range drainEvents(c) {
				t.Fatalf("%v, but %v", v, ev.Kind)
			}
			return
		}
		defer func() { c = nil }()
		if server := ident.ServerID(binary.LittleEndian.Uint64(b[4:])); server != serverID(0) && server != serverID(1) {
			t.Fatalf("an answer of %v counts", server)
		}
		pduAt := int(binary.LittleEndian.Uint16(b[2:])) + 4
		var view wire.ResponseView
		if err := wire.ParseResponse(b[pduAt:], wire.Layout2, &view); err != nil {
			t.Fatal(err)
		}
		if view.Guards() != 2 || view.Resources() != 2 {
			t.Fatalf("%d guards and %d resources count", view.Guards(), view.Resources())
		}
		for i := range 2 {
			if view.Guard(i).Tracker != ask.Guards[0].Tracker || view.Resource(i).Bucket != ask.Resources[0].Bucket {
				t.Fatal("an answer to another question counts")
			}
		}
		c.HandleTimer(at(ms(20)))
		completions := 0
		for _, ev := range drainEvents(c) {
			if ev.Kind == EventCompleted {
				completions++
			}
		}
		if completions != 1 {
			t.Fatalf("%d completions", completions)
		}
	})
	target.Fresh(func(testing.TB) { c = nil })
	target.Aim(storm.Datagram)
	for _, v := range vectors.Responses(tb) {
		target.Add([]byte(v.Response))
	}
	asked := newTestCore(tb, 2, withKey)
	first, err := asked.Submit(at(0), ask)
	if err != nil {
		tb.Fatal(err)
	}
	r := newResponder(tb, key)
	target.Add(r.answer(tb, asked.flights.find(first).datagram, serverID(0), reply{}))
	target.Add(r.answer(tb, asked.flights.find(first).datagram, serverID(1), reply{deficit: 1, changePort: true}))
	return target
}

func FuzzHandleDatagram(f *testing.F)      { handleDatagramTarget(f).Fuzz(f) }
func TestStormHandleDatagram(t *testing.T) { handleDatagramTarget(t).Storm(t) }

// discoveryTarget makes SRV records and addresses of bytes: whatever DNS says, the
// membership keeps its bounds and order.
func discoveryTarget(tb testing.TB) *storm.Target {
	key := testKey(tb, apikey.AuthNone)
	target := storm.New2("FuzzDiscovery", func(t testing.TB, names, addrs []byte) {
		limits := Limits{Servers: 3, Addresses: 2, Endpoints: 5}
		c := newTestCore(t, 0, func(cfg *Config) { cfg.Key, cfg.Domain, cfg.Limits = key, "example.test", limits })
		for round := range 3 {
			now := at(ms(100_000 * round))
			c.Refresh(now)
			var srv SRVAnswer
			for i, name := range splitNames(names) {
				srv.Records = append(srv.Records, SRV{name, uint16(i % 3)})
			}
			for lookups := drainEvents(c); len(lookups) > 0; lookups = drainEvents(c) {
				for i, ev := range lookups {
					switch {
					case ev.Kind != EventLookup:
					case ev.Lookup.Kind == LookupSRV:
						c.HandleSRV(now, ev.Lookup.ID, srv)
					default:
						c.HandleAddrs(now, ev.Lookup.ID, AddrAnswer{
							Addrs: splitAddrs(addrs, i), FailedIPv4: round == 1, FailedIPv6: i == 1,
						})
					}
				}
			}
			checkBounds(t, c, &limits)
			slices.Reverse(names) // the next answer is another one
		}
		if c.discovery.running {
			t.Fatal("all lookups were answered, but the refresh goes on")
		}
	})
	target.Add([]byte("s-1.example.test\x00s-2.example.test\x00s-1.other.test\x00www\x00"), []byte{192, 0, 2, 1, 192, 0, 2, 2})
	target.Add([]byte("s-5\x00s-5\x00S-5.\x00s-18446744073709551615\x00s--1\x00s-01\x00.\x00"), []byte{0, 0, 0, 0, 255, 255, 255, 255, 224, 0, 0, 1})
	target.Add([]byte("s-3.a\x00s-2.a\x00s-1.a\x00s-4.a\x00s-9.a\x00"), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	return target
}

func FuzzDiscovery(f *testing.F)      { discoveryTarget(f).Fuzz(f) }
func TestStormDiscovery(t *testing.T) { discoveryTarget(t).Storm(t) }

func checkBounds(t testing.TB, c *Core, limits *Limits) {
	total := 0
	members := c.Membership()
	for i, s := range members {
		if i > 0 && !members[i-1].ID.Older(s.ID) {
			t.Fatalf("%v comes after %v", s.ID, members[i-1].ID)
		}
		if s.ID.Start().UnixMilli() > c.wall+60_000 {
			t.Fatalf("%v starts at %v", s.ID, s.ID.Start())
		}
		if len(s.Endpoints) == 0 || len(s.Endpoints) > limits.Addresses {
			t.Fatalf("%v has %d endpoints", s.ID, len(s.Endpoints))
		}
		for j, e := range s.Endpoints {
			if !reachable(e) || e.Addr().Is4In6() {
				t.Fatalf("%v is to be reached at %v", s.ID, e)
			}
			if j > 0 && s.Endpoints[j-1].Compare(e) >= 0 {
				t.Fatalf("%v: %v comes after %v", s.ID, e, s.Endpoints[j-1])
			}
		}
		total += len(s.Endpoints)
	}
	if len(members) > limits.Servers || total > limits.Endpoints {
		t.Fatalf("%d servers with %d endpoints", len(members), total)
	}
	if len(c.members.endpoints) != total {
		t.Fatalf("%d endpoints, want %d", len(c.members.endpoints), total)
	}
}

func splitNames(b []byte) (names []string) {
	for len(b) > 0 {
		i := slices.Index(b, 0)
		if i < 0 {
			i = len(b) - 1
		}
		names = append(names, string(b[:i]))
		b = b[i+1:]
	}
	return names
}

// splitAddrs takes four bytes an address, and turns some into IPv6.
func splitAddrs(b []byte, skip int) (addrs []netip.Addr) {
	for i := skip; i+4 <= len(b); i += 4 {
		a := netip.AddrFrom4([4]byte(b[i : i+4]))
		switch b[i] % 4 {
		case 0:
			a = netip.AddrFrom16([16]byte{0: b[i], 1: b[i+1], 15: b[i+2]})
		case 1:
			a = netip.AddrFrom16(a.As16()) // mapped
		}
		addrs = append(addrs, a)
	}
	return addrs
}
