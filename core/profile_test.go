package core

import (
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/policy"
)

// profiled is a request under way whose answers a test gives.
type profiled struct {
	t        *testing.T
	c        *Core
	r        *responder
	datagram []byte
}

func newProfiled(t *testing.T, servers int, change func(*Config)) *profiled {
	t.Helper()
	c := newTestCore(t, servers, change)
	p := &profiled{t: t, c: c, r: newResponder(t, c.cfg.Key)}
	p.submit(0)
	return p
}

func (p *profiled) submit(when time.Duration) {
	p.t.Helper()
	if _, err := p.c.Submit(at(when), askOne()); err != nil {
		p.t.Fatal(err)
	}
	p.datagram = drainSends(p.c, at(when))[0].Payload
}

// timer fires what is due and takes what is to be sent.
func (p *profiled) timer(when time.Duration) {
	p.c.HandleTimer(at(when))
	drainSends(p.c, at(when))
}

func (p *profiled) answer(when time.Duration, server int, say reply) {
	p.t.Helper()
	if v := p.c.HandleDatagram(at(when), 1, p.r.answer(p.t, p.datagram, serverID(server), say)); !v.Valid() {
		p.t.Fatal(v)
	}
	drainSends(p.c, at(when))
}

// ended returns the one completion that there is.
func (p *profiled) ended() Completion {
	p.t.Helper()
	events := drainEvents(p.c)
	events = slices.DeleteFunc(events, func(ev Event) bool { return ev.Kind == EventSteer })
	if len(events) != 1 || events[0].Kind != EventCompleted {
		p.t.Fatalf("events: %+v", events)
	}
	return events[0].Completion
}

// expect holds the profile of a completion against another's.
func (p *profiled) expect(want Completion) {
	p.t.Helper()
	got := p.ended()
	answered := got.Seen.Datagrams[DatagramCounted]
	if got.Outcome != want.Outcome || got.Server != want.Server || got.KeepPort != want.KeepPort || got.Oldest != want.Oldest ||
		got.Round != want.Round || got.Final != want.Final || got.Replays != want.Replays || got.Elapsed != want.Elapsed ||
		got.Seen.Servers != want.Seen.Servers || answered != want.Seen.Datagrams[DatagramCounted] {
		p.t.Errorf("completion %+v\nwant      %+v", got, want)
	}
}

// seen is what a request saw that asked so many servers, of which so many had
// answered.
func seen(servers int, answered uint32) Seen {
	s := Seen{Servers: servers}
	s.Datagrams[DatagramCounted] = answered
	return s
}

func TestProfileOfTheOldest(t *testing.T) {
	p := newProfiled(t, 3, nil)
	p.answer(ms(4), 0, reply{changePort: true})
	p.expect(Completion{Outcome: Granted, Server: serverID(0), Oldest: true, Elapsed: ms(4), Seen: seen(3, 1)})
}

// A younger server decides in round 1, after one replay; the answers that count
// until then are those of two.
func TestProfileOfAFallback(t *testing.T) {
	p := newProfiled(t, 3, func(cfg *Config) { cfg.Policy = policy.StrictOldest() })
	p.timer(ms(20))
	p.answer(ms(25), 2, reply{deficit: 1})
	p.answer(ms(26), 1, reply{deficit: 1})
	p.answer(ms(27), 1, reply{})
	p.timer(ms(40))
	p.expect(Completion{
		Outcome: Rejected, Server: serverID(1), KeepPort: true, Round: 1, Replays: 1, Elapsed: ms(40), Seen: seen(3, 2),
	})
}

func TestProfileOfTheFinalInterval(t *testing.T) {
	p := newProfiled(t, 2, nil)
	p.timer(ms(20))
	p.timer(ms(40))
	p.answer(ms(41), 1, reply{})
	p.expect(Completion{Outcome: Granted, Server: serverID(1), KeepPort: true, Round: 2, Final: true, Replays: 1, Elapsed: ms(41), Seen: seen(2, 1)})
}

// Rounds that a late timer skipped, and replays that were not sent because an
// answer was quicker, are none.
func TestProfileCountsReplaysThatWereSent(t *testing.T) {
	p := newProfiled(t, 1, func(cfg *Config) {
		cfg.Policy = policy.Default()
		cfg.Policy.Replays = 5
	})
	p.timer(ms(65)) // round 3; 1 and 2 are skipped
	p.timer(ms(80))
	p.c.HandleTimer(at(ms(100))) // round 5's is not polled
	p.answer(ms(101), 0, reply{})
	p.expect(Completion{Outcome: Granted, Server: serverID(0), Oldest: true, KeepPort: true, Round: 5, Replays: 2, Elapsed: ms(101), Seen: seen(1, 1)})
}

// A replay to several servers is one.
func TestProfileOfATimeout(t *testing.T) {
	p := newProfiled(t, 3, nil)
	p.timer(ms(20))
	p.timer(ms(40))
	p.timer(ms(60))
	p.expect(Completion{Outcome: TimedOut, KeepPort: true, Round: 2, Final: true, Replays: 1, Elapsed: ms(60), Seen: seen(3, 0)})
	if d := p.c.Stats().Decided; d != (Decided{}) {
		t.Errorf("a timeout counts as a decision: %+v", d)
	}
}

func TestProfileOfNothing(t *testing.T) {
	c := newTestCore(t, 1, nil)
	if _, err := c.Submit(at(0), &Request{}); err != nil {
		t.Fatal(err)
	}
	done := drainEvents(c)[0].Completion
	if !done.KeepPort || done.Oldest || done.Final || done.Replays != 0 {
		t.Errorf("%+v", done)
	}
	if d := c.Stats().Decided; d != (Decided{}) {
		t.Errorf("nobody decided: %+v", d)
	}
}

// Decisions in each of many rounds, one of them the final interval.
func TestDecidedAddsUp(t *testing.T) {
	const rounds = 11
	p := newProfiled(t, 2, func(cfg *Config) {
		cfg.Policy = policy.FastestValid()
		cfg.Policy.Replays = rounds - 1
	})
	for k := range rounds + 1 {
		begin := time.Duration(k) * time.Second
		if k > 0 {
			p.submit(begin)
		}
		for i := 1; i <= k; i++ {
			p.timer(begin + ms(20*i))
		}
		p.answer(begin+ms(20*k+1), k%2, reply{deficit: uint16(k % 3)})
		if done := p.ended(); done.Round != k || done.Final != (k == rounds) {
			t.Errorf("round %d, final %v, want %d", done.Round, done.Final, k)
		}
	}
	want := Decided{InRound: [DecidedRounds]uint64{1, 1, 1, 1, 1, 1, 1, 4}, InFinal: 1, ByOldest: 6, ByFallback: 6}
	if got := p.c.Stats().Decided; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
