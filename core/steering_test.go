package core

import (
	"testing"
	"time"
)

// TestReplacedSocketIsDeaf replaces a socket that the core already knows, because
// it became by a replacement itself, once its own deafness is over and nobody
// asked for it: advice that still comes in on it changes nothing.
func TestReplacedSocketIsDeaf(t *testing.T) {
	c := newTestCore(t, 2, nil)
	r := newResponder(t, c.cfg.Key)
	c.Rebound(at(0), 1, 2)
	later := time.Second + ms(1)
	if _, err := c.Submit(at(later), askOne()); err != nil {
		t.Fatal(err)
	}
	sends := drainSends(c, at(later))
	c.Rebound(at(later), 2, 3)
	c.HandleDatagram(at(later+ms(1)), 2, r.answer(t, sends[0].Payload, serverID(0), reply{changePort: true}))
	c.HandleDatagram(at(later+ms(1)), 3, r.answer(t, sends[0].Payload, serverID(1), reply{changePort: true}))
	for _, ev := range drainEvents(c) {
		if ev.Kind == EventSteer {
			t.Errorf("socket %d is to change", ev.Socket)
		}
	}
	if s := c.Stats(); s.Advice != 2 || s.Steers != 0 {
		t.Errorf("advice heard %d times, followed %d", s.Advice, s.Steers)
	}
}
