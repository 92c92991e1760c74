package core

import (
	"net/netip"
	"testing"
	"time"
)

// TestForcedRefreshAtItsInstant asks for a refresh a moment before one is
// allowed, and at that very instant.
func TestForcedRefreshAtItsInstant(t *testing.T) {
	c := newTestCore(t, 0, func(cfg *Config) { cfg.Domain = "example.test" })
	c.Refresh(at(0))
	c.HandleSRV(at(0), 1, SRVAnswer{Records: []SRV{{serverID(0).Label() + ".a", 1}}})
	c.HandleAddrs(at(0), 2, AddrAnswer{Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
	drainEvents(c)
	if n := len(c.Membership()); n != 1 {
		t.Fatalf("%d servers", n)
	}
	earliest := c.discovery.earliest - at(0).Mono
	if earliest < time.Second || earliest > 1500*time.Millisecond {
		t.Fatalf("the next may be forced after %v", earliest)
	}
	c.Refresh(at(earliest - 1))
	if events := drainEvents(c); len(events) != 0 || c.Stats().Refreshes != 1 {
		t.Fatalf("too early: %+v", events)
	}
	if d, ok := c.Deadline(); !ok || d != at(earliest).Mono {
		t.Errorf("the deadline is %v (%v), want %v", d-at(0).Mono, ok, earliest)
	}
	c.Refresh(at(earliest))
	if events := drainEvents(c); len(events) != 1 || events[0].Kind != EventLookup || c.Stats().Refreshes != 2 {
		t.Errorf("at its instant: %+v", events)
	}
}
