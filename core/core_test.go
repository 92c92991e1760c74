package core

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
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
	if !bytes.Equal(delivery[0].Payload, sends[0].Payload) {
		t.Error("completion delivery does not send the same bytes")
	}
}

// TestSeenIsOfTheRequest counts for a completion what came in while its request
// was in flight, and nothing from before or after.
func TestSeenIsOfTheRequest(t *testing.T) {
	c := newTestCore(t, 2, nil)
	noise := func() { c.HandleDatagram(at(0), 1, []byte("noise")) }
	noise()
	id, err := c.Submit(at(0), askOne())
	if err != nil {
		t.Fatal(err)
	}
	first := drainSends(c, at(0))
	c.HandleSendFailure(at(0), first[1].Ref, errors.New("unreachable"))
	noise()
	noise()
	r := newResponder(t, c.cfg.Key)
	unknown := r.compose(t, wire.UniqueID{1}, serverID(0), nil, nil)
	c.HandleDatagram(at(0), 1, unknown)
	c.HandleDatagram(at(0), 1, r.answer(t, first[0].Payload, serverID(2), reply{}))
	c.HandleDatagram(at(0), 1, r.answer(t, first[0].Payload, serverID(0), reply{}))
	// Decided, and not yet read.
	noise()
	c.HandleDatagram(at(0), 1, unknown)
	c.HandleDatagram(at(0), 1, r.answer(t, first[0].Payload, serverID(1), reply{}))
	c.HandleSendFailure(at(0), first[0].Ref, errors.New("unreachable"))

	events := drainEvents(c)
	if len(events) != 1 || events[0].Completion.Request != id {
		t.Fatalf("events %+v", events)
	}
	want := Seen{Servers: 2, Endpoints: 2, SendFailures: 1}
	want.Datagrams[DatagramMalformed] = 2
	want.Datagrams[DatagramUnknown] = 1
	want.Datagrams[DatagramStranger] = 1
	want.Datagrams[DatagramCounted] = 1
	if got := events[0].Completion.Seen; got != want {
		t.Errorf("seen %+v, want %+v", got, want)
	}
	s := c.Stats()
	if s.Datagrams[DatagramMalformed] != 4 || s.Datagrams[DatagramLate] != 1 || s.SendFailures[SendFirst] != 2 {
		t.Errorf("stats %+v", s)
	}
}

// TestCloseLeavesNothing closes a core with a request in flight, one that ended
// and one whose completion was not read.
func TestCloseLeavesNothing(t *testing.T) {
	c := newTestCore(t, 1, nil)
	for range 3 {
		if _, err := c.Submit(at(0), askOne()); err != nil {
			t.Fatal(err)
		}
	}
	sends := drainSends(c, at(0))
	r := newResponder(t, c.cfg.Key)
	c.HandleDatagram(at(0), 1, r.answer(t, sends[0].Payload, serverID(0), reply{}))
	drainEvents(c)
	c.HandleDatagram(at(0), 1, r.answer(t, sends[1].Payload, serverID(0), reply{}))
	if s := c.Stats(); s.InFlight != 1 || s.Kept != 2 {
		t.Fatalf("%d in flight, %d kept", s.InFlight, s.Kept)
	}
	c.Close(at(0))
	if events := drainEvents(c); len(events) != 1 || events[0].Completion.Outcome != Granted {
		t.Errorf("events %+v, want the completion that was decided", events)
	}
	if s := c.Stats(); s.InFlight != 0 || s.Kept != 0 {
		t.Errorf("%d in flight, %d kept", s.InFlight, s.Kept)
	}
	if n := len(c.flights.free); n != 3 {
		t.Errorf("%d of 3 records are free", n)
	}
}

// TestResultsLastUntilTheNextPoll reads a completion whose record is used again
// meanwhile.
func TestResultsLastUntilTheNextPoll(t *testing.T) {
	c := newTestCore(t, 1, nil)
	r := newResponder(t, c.cfg.Key)
	decide := func(now Time, deficit uint16) {
		t.Helper()
		if _, err := c.Submit(now, askOne()); err != nil {
			t.Fatal(err)
		}
		sends := drainSends(c, now)
		if v := c.HandleDatagram(now, 1, r.answer(t, sends[len(sends)-1].Payload, serverID(0), reply{deficit: deficit})); v != DatagramCounted {
			t.Fatal(v)
		}
	}
	decide(at(0), 11)
	var ev Event
	if !c.PollEvent(&ev) {
		t.Fatal("no event")
	}
	c.HandleTimer(at(ms(100))) // the identity is forgotten
	decide(at(ms(100)), 22)
	if got := ev.Completion.Resources; len(got) != 1 || got[0].Deficit != 11 {
		t.Errorf("results are now %+v", got)
	}
	if !c.PollEvent(&ev) || ev.Completion.Resources[0].Deficit != 22 {
		t.Errorf("second completion %+v", ev.Completion)
	}
	if c.PollEvent(&ev) {
		t.Errorf("a third event %+v", ev)
	}
	decide(at(ms(200)), 33)
	c.HandleTimer(at(ms(300)))
	if n := len(c.flights.all); n > 2 {
		t.Errorf("%d records for three requests one after the other", n)
	}
}

// TestNothingIsKept changes the request after Submit, and the datagram after
// HandleDatagram.
func TestNothingIsKept(t *testing.T) {
	c := newTestCore(t, 1, func(cfg *Config) { cfg.Key = testKey(t, apikey.AuthNone) })
	ask := askOne()
	if _, err := c.Submit(at(0), ask); err != nil {
		t.Fatal(err)
	}
	ask.Resources[0] = wire.Resource{}
	sends := drainSends(c, at(0))
	answer := newResponder(t, c.cfg.Key).answer(t, sends[0].Payload, serverID(0), reply{deficit: 3})
	if v := c.HandleDatagram(at(0), 1, answer); v != DatagramCounted {
		t.Fatal(v)
	}
	clear(answer)
	if done := drainEvents(c); done[0].Completion.Resources[0].Deficit != 3 {
		t.Errorf("completion %+v", done[0].Completion)
	}
	if c.envelope.Datagram() != nil || c.response.PDU() != nil {
		t.Error("the core still refers to the datagram")
	}
}

// TestWallClockSteps sets the wall clock about: deadlines do not care, and each
// request is dated by the clock of its Submit.
func TestWallClockSteps(t *testing.T) {
	c := newTestCore(t, 1, nil)
	for _, wall := range []int64{1_796_000_000_000, 5, -5, 1 << 52} {
		now := Time{Mono: at(0).Mono, Wall: wall}
		if _, err := c.Submit(now, askOne()); err != nil {
			t.Fatal(err)
		}
		sends := drainSends(c, now)
		var e wire.Envelope
		if err := wire.ParseEnvelope(sends[0].Payload, &e); err != nil {
			t.Fatal(err)
		}
		if want := uint64(max(wall, 0)); e.Header.Timestamp != want {
			t.Errorf("time stamp %d, want %d", e.Header.Timestamp, want)
		}
	}
	if deadline, ok := c.Deadline(); !ok || deadline != at(ms(20)).Mono {
		t.Errorf("deadline %v %v", deadline, ok)
	}
	c.HandleTimer(Time{Mono: at(ms(19)).Mono, Wall: 1 << 60})
	if sends := drainSends(c, at(ms(19))); len(sends) != 0 {
		t.Errorf("%d sends because of the wall clock", len(sends))
	}
}

// TestExtremeTimes keeps arithmetic inside a Duration.
func TestExtremeTimes(t *testing.T) {
	for _, mono := range []time.Duration{math.MinInt64, -maxMono, -1, 0, maxMono, math.MaxInt64} {
		c := newTestCore(t, 0, nil)
		if err := c.SetMembership(Time{Mono: mono}, testServers(1)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Submit(Time{Mono: mono}, askOne()); err != nil {
			t.Fatal(err)
		}
		if sends := drainSends(c, Time{Mono: mono}); len(sends) != 1 {
			t.Errorf("at %d: %d sends", mono, len(sends))
		}
		start := max(min(mono, maxMono), -maxMono)
		if deadline, ok := c.Deadline(); !ok || deadline != start+ms(20) {
			t.Errorf("at %d: deadline %d %v", mono, deadline, ok)
		}
		if err := c.Report(Time{Mono: mono}, observations(1)); err != nil {
			t.Fatal(err)
		}
		if sends := drainSends(c, Time{Mono: mono}); len(sends) != 1 || sends[0].Until <= mono && mono != math.MaxInt64 {
			t.Errorf("at %d: a report is to be sent until %d", mono, sends[0].Until)
		}
	}
}
