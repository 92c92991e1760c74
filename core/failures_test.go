package core

import (
	"errors"
	"testing"

	"github.com/weirhq/weir/policy"
)

// A failure counts once, in whatever order a runtime that is slow tells of the
// failures of several rounds; one of a send that never was does not count.
func TestFailuresToldOutOfOrder(t *testing.T) {
	c := newTestCore(t, 2, func(cfg *Config) {
		p, err := policy.Parse("strict-oldest replays=3")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Policy = p
	})
	id, err := c.Submit(at(0), askOne())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range drainSends(c, at(0)) {
		if s.Until != at(0).Mono+c.Timeline().Horizon() {
			t.Errorf("to be sent until %v", s.Until)
		}
	}
	for _, n := range []int{20, 40} {
		c.HandleTimer(at(ms(n)))
		drainSends(c, at(ms(n)))
	}
	broken := errors.New("unreachable")
	for range 2 {
		for _, round := range []int{2, 1, 3, 0, -1, 1 << 20} {
			c.HandleSendFailure(at(ms(41)), SendRef{Kind: SendReplay, Request: id, Round: round, Endpoint: 0}, broken)
		}
		c.HandleSendFailure(at(ms(41)), SendRef{Kind: SendReplay, Request: id, Round: 1, Endpoint: 1}, broken)
	}
	if n := c.Stats().SendFailures[SendReplay]; n != 3 {
		t.Errorf("%d failures of replays counted, want 2 of round 1 and 1 of round 2", n)
	}
	c.HandleTimer(at(ms(100)))
	events := drainEvents(c)
	if len(events) != 1 || events[0].Completion.Outcome != TimedOut || events[0].Completion.Seen.SendFailures != 3 {
		t.Errorf("%+v", events)
	}
}

// Completion delivery happens once: what a host says of its round names no other.
func TestFailureOfCompletionDeliveryCountsOnce(t *testing.T) {
	c := newTestCore(t, 2, nil)
	id, err := c.Submit(at(0), askOne())
	if err != nil {
		t.Fatal(err)
	}
	first := drainSends(c, at(0))
	r := newResponder(t, c.cfg.Key)
	c.HandleDatagram(at(ms(1)), 1, r.answer(t, first[0].Payload, serverID(0), reply{}))
	if sends := drainSends(c, at(ms(1))); len(sends) != 1 || sends[0].Ref != (SendRef{Kind: SendCompletion, Request: id, Endpoint: 1}) {
		t.Fatalf("sends %+v", sends)
	}
	for _, round := range []int{0, 1, 0} {
		c.HandleSendFailure(at(ms(1)), SendRef{Kind: SendCompletion, Request: id, Round: round, Endpoint: 1}, errors.New("unreachable"))
	}
	if n := c.Stats().SendFailures[SendCompletion]; n != 1 {
		t.Errorf("%d failures counted, want 1", n)
	}
}
