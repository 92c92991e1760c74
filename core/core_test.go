package core

import (
	"testing"
)

func TestOneQuestionToOneDecision(t *testing.T) {
	c := newTestCore(t, 2, nil)
	id, err := c.Submit(at(0), askOne())
	if err != nil {
		t.Fatal(err)
	}
	sends := drainSends(c, at(0))
	if len(sends) != 2 || sends[0].Server != serverID(0) || sends[1].Server != serverID(1) {
		t.Fatalf("sends: %+v", sends)
	}
	if deadline, ok := c.Deadline(); !ok || deadline != at(ms(20)).Mono {
		t.Errorf("deadline %v %v, want the end of round 0", deadline, ok)
	}
	r := newResponder(t, c.cfg.Key)
	if v := c.HandleDatagram(at(ms(3)), 1, r.answer(t, sends[0].Payload, serverID(0), reply{})); v != DatagramCounted {
		t.Fatalf("verdict %v", v)
	}
	events := drainEvents(c)
	if len(events) != 1 || events[0].Kind != EventCompleted {
		t.Fatalf("events: %+v", events)
	}
	got := events[0].Completion
	if got.Request != id || got.Outcome != Granted || got.Server != serverID(0) || !got.KeepPort || got.Elapsed != ms(3) || got.Round != 0 {
		t.Errorf("completion: %+v", got)
	}
	delivery := drainSends(c, at(ms(3)))
	if len(delivery) != 1 || delivery[0].Kind != SendCompletion || delivery[0].Server != serverID(1) {
		t.Errorf("completion delivery: %+v", delivery)
	}
	if string(delivery[0].Payload) != string(sends[0].Payload) {
		t.Error("completion delivery does not send the same bytes")
	}
}
