package core

import (
	"testing"

	"github.com/weirhq/weir/policy"
)

// The delay of completion delivery counts from what was sent: a replay that the host had not taken when an
// answer came is not sent any more, and gives nobody time to answer it.
func TestDeliveryDelayAfterUnsentReplay(t *testing.T) {
	c := newTestCore(t, 2, func(cfg *Config) {
		cfg.Policy = policy.Default()
		cfg.Policy.DeliveryDelay = 1
	})
	if _, err := c.Submit(at(0), askOne()); err != nil {
		t.Fatal(err)
	}
	first := drainSends(c, at(0))
	r := newResponder(t, c.cfg.Key)
	c.HandleTimer(at(ms(20))) // the replay is wanted, and not taken
	if v := c.HandleDatagram(at(ms(21)), 1, r.answer(t, first[0].Payload, serverID(1), reply{})); v != DatagramCounted {
		t.Fatal(v)
	}
	sends := drainSends(c, at(ms(21)))
	if len(sends) != 1 || sends[0].Kind != SendCompletion || sends[0].Server != serverID(0) {
		t.Errorf("with the decision is sent %+v", sends)
	}
	c.HandleTimer(at(ms(40)))
	if sends := drainSends(c, at(ms(40))); len(sends) != 0 {
		t.Errorf("later is sent %+v", sends)
	}
}
