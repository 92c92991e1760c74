package core

import (
	"testing"
	"time"
)

// A probe that a datagram after its horizon decides is forgotten at once: its
// record is nobody's, whatever instant the host's clock began at.
func TestProbeDecidedAfterItsHorizon(t *testing.T) {
	for name, begin := range map[string]time.Duration{"before 0": -2 * time.Hour, "after 0": 0} {
		c := newTestCore(t, 0, func(cfg *Config) { cfg.FailFast.Timeouts = 1 })
		if err := c.SetMembership(at(begin), testServers(2)); err != nil {
			t.Fatal(err)
		}
		c.failFast.calm = maxMono // there is no probe yet
		timeOut(t, c, begin)
		drainEvents(c)
		d, sends := nextProbe(t, c)
		r := newResponder(t, c.cfg.Key)
		if v := c.HandleDatagram(at(d+ms(1)), 1, r.answer(t, sends[0].Payload, serverID(1), reply{})); v != DatagramCounted {
			t.Fatal(name, v)
		}
		late := at(d + ms(60))
		if v := c.HandleDatagram(late, 1, r.answer(t, sends[0].Payload, serverID(0), reply{})); v != DatagramExpired {
			t.Error(name, v)
		}
		if events := drainEvents(c); len(events) != 1 || events[0].Kind != EventRecovered {
			t.Errorf("%s: %+v", name, events)
		}
		if _, err := c.Submit(late, &Request{}); err != nil {
			t.Fatal(err)
		}
		events := drainEvents(c)
		if len(events) != 1 || events[0].Completion.Seen != (Seen{}) {
			t.Errorf("%s: the request for nothing saw %+v", name, events)
		}
	}
}
