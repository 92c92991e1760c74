package core

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
)

// world is a core and its model, told the same.
type world struct {
	tb testing.TB
	m  *model
	c  *Core
	r  *responder

	now     time.Duration // what the next call says, unless it says less
	origin  time.Duration // of the monotonic clock
	step    time.Duration // of the wall clock, so far
	unsent  int           // actions until sends are polled again
	unread  int           // actions until events are
	sockets []modelSocket
	told    modelNumbers // for failures, sockets and reports to differ

	// What the model wants, until the core has said it.
	wanted []modelSend
	ends   []*modelRequest
	steers []SocketID
	change []*Discovered
	stats  Stats
	// Completion deliveries that came later than the decision.
	delayed uint64

	// What the core said, for what must hold without a model.
	given     []modelGiven
	first     map[RequestID]*modelRequest
	completed map[RequestID]int
	reports   map[[2]int][]byte
	handed    []modelHanded
	identity  map[wire.UniqueID]bool
}

type modelNumbers struct{ failure, socket int }

// modelSocket is a socket of the host.
type modelSocket struct {
	id      SocketID
	retired bool
	until   int // the entry that retired it
}

// modelGiven is a datagram that the core gave out.
type modelGiven struct {
	send modelSend
	ref  SendRef
}

// modelHanded is a datagram that was handed in.
type modelHanded struct {
	r *modelRequest
	d *modelDatagram
	b []byte
}

// TestAgainstModel drives a core and the model with the same calls, at instants
// that fall together often, and compares every datagram, verdict, completion,
// steering event, count and deadline. It makes 10,000 runs, or as many as
// -rapid.checks says; those of a night are
//
//	go test ./core -run '^TestAgainstModel$' -rapid.checks=1000000 -timeout=3h -v
//
// where -v shows how many there were and, with -rapid.seed=N, they are the same
// each time. It is to say "passed 1000000 tests": a -timeout that comes near ends
// the runs early and well.
func TestAgainstModel(t *testing.T) {
	defaultChecks(t, 10_000)
	keys := map[apikey.Auth]apikey.Key{}
	for _, auth := range modelAuths {
		keys[auth] = testKey(t, auth)
	}
	var total modelTotal
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rt, keys)
		rt.Repeat(map[string]func(*rapid.T){
			"submit": w.submit, "submit 2": w.submit, "submit 3": w.submit,
			"answer": w.answer, "answer 2": w.answer, "answer 3": w.answer,
			"answer again": w.answerAgain,
			"deadline":     w.deadline, "deadline 2": w.deadline, "deadline 3": w.deadline, "deadline 4": w.deadline,
			"timer": w.timer,
			"wait":  w.wait, "wait 2": w.wait,
			"fail": w.fail, "fail all": w.failAll,
			"members": w.members, "report": w.report,
			"cancel": w.cancel, "close": w.close,
			"rebound": w.rebound, "hold": w.hold,
			"wall clock": w.wallClock,
		})
		w.finish(rt)
		total.add(w)
	})
	total.check(t)
}

var modelAuths = []apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES}

// defaultChecks makes rapid check a property n times, unless the command line
// says how often.
func defaultChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f == checks })
	if given {
		return
	}
	before := checks.Value.String()
	if err := checks.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(before) })
}

func newWorld(tb testing.TB, t *rapid.T, keys map[apikey.Auth]apikey.Key) *world {
	w := &world{
		tb: tb, m: &model{plan: drawPlan(t), capacity: DefaultMaxInFlight},
		origin:  rapid.SampledFrom([]time.Duration{time.Hour, 0, -2 * time.Millisecond}).Draw(t, "origin"),
		sockets: []modelSocket{{id: 1}, {id: 2}}, told: modelNumbers{socket: 2},
		first: map[RequestID]*modelRequest{}, completed: map[RequestID]int{},
		reports: map[[2]int][]byte{}, identity: map[wire.UniqueID]bool{},
	}
	if rapid.IntRange(0, 4).Draw(t, "bounded") == 4 {
		w.m.capacity = rapid.IntRange(1, 3).Draw(t, "capacity")
	}
	layout := rapid.SampledFrom([]wire.Layout{wire.Layout2, wire.Layout2, wire.Layout1}).Draw(t, "layout")
	key := keys[rapid.SampledFrom(modelAuths).Draw(t, "auth")]
	w.c = newTestCore(tb, 0, func(cfg *Config) {
		cfg.Policy, cfg.Key, cfg.Layout, cfg.MaxInFlight = w.m.plan.policy, key, layout, w.m.capacity
	})
	w.r = newResponder(tb, key)
	w.members(t)
	w.submit(t)
	return w
}

// tick is the instant of the next call: now, or, where the clock goes back, less.
func (w *world) tick(t *rapid.T) time.Duration {
	back := []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, time.Millisecond, time.Hour}
	return w.now - rapid.SampledFrom(back).Draw(t, "back")
}

// at is an instant in the core's terms.
func (w *world) at(d time.Duration) Time {
	return Time{Mono: w.origin + d, Wall: (1_796_000_000*time.Second + w.now + w.step).Milliseconds()}
}

// hand tells the model of a call, and notes what it wants of the core.
func (w *world) hand(e modelEntry) *modelEntry {
	told := w.m.hand(e)
	sends := w.m.sends()
	w.wanted = append(w.wanted, sends...)
	for _, s := range sends {
		if s.kind == SendCompletion && s.r.end.entry < len(w.m.log)-1 {
			w.delayed++
		}
	}
	for _, r := range w.m.completed() {
		w.ends = append(w.ends, r)
		w.stats.Outcomes[r.end.outcome]++
		w.countDecided(r)
	}
	if told.deed == deedDatagram {
		w.stats.Datagrams[told.verdict]++
		if told.verdict.Valid() && told.datagram.changePort {
			w.stats.Advice++
		}
		if told.steered {
			w.stats.Steers++
			w.steers = append(w.steers, told.datagram.socket)
		}
	}
	return told
}

// spared counts requests whose completion delivery was still to come when the last
// server answered.
func (w *world) spared() (n uint64) {
	for _, r := range w.m.requests {
		if due, later := w.m.delivery(r); later && len(r.answers) == len(r.servers) {
			if last := &w.m.log[r.answers[len(r.answers)-1]]; last.at < due {
				n++
			}
		}
	}
	return n
}

// countDecided counts a decision of a server.
func (w *world) countDecided(r *modelRequest) {
	if r.empty() || r.end.outcome != Granted && r.end.outcome != Rejected {
		return
	}
	by := &w.m.log[r.end.by]
	switch k := w.m.plan.interval(by.at - r.t0); {
	case k > w.m.plan.policy.Replays:
		w.stats.Decided.InFinal++
	case k >= DecidedRounds:
		w.stats.Decided.InRound[DecidedRounds-1]++
	default:
		w.stats.Decided.InRound[k]++
	}
	if r.age(by) == 0 {
		w.stats.Decided.ByOldest++
	} else {
		w.stats.Decided.ByFallback++
	}
}

// settle polls what the core wants, and compares.
func (w *world) settle(t *rapid.T) {
	if w.unsent--; w.unsent < 0 {
		w.poll(t, w.now, 1<<20)
	}
	if w.unread--; w.unread < 0 {
		w.pollEvents(t)
	}
	w.compareDeadline(t)
	w.stats.InFlight, w.stats.Kept = w.m.inFlight(), w.m.kept()
	if got := w.c.Stats(); got != w.stats {
		w.fatalf(t, "stats %+v\nwant  %+v", got, w.stats)
	}
}

// poll takes up to n datagrams.
func (w *world) poll(t *rapid.T, said time.Duration, n int) {
	e := w.hand(modelEntry{deed: deedPoll, at: said})
	var out Send
	for ; n > 0; n-- {
		more := w.c.PollSend(w.at(said), &out)
		for len(w.wanted) > 0 && !w.m.sendable(&w.wanted[0]) {
			w.wanted = w.wanted[1:]
		}
		if more != (len(w.wanted) > 0) {
			w.fatalf(t, "a datagram: %v %+v; wanted: %+v", more, out.Ref, w.wanted)
		}
		if !more {
			return
		}
		w.checkSend(t, e.at, &out, &w.wanted[0])
		w.wanted = w.wanted[1:]
	}
}

// checkSend compares a datagram, and holds it to the rules for all of them.
func (w *world) checkSend(t *rapid.T, now time.Duration, got *Send, want *modelSend) {
	w.stats.Sent[want.kind]++
	servers := w.m.log[want.report].servers
	ref := SendRef{Kind: want.kind, Round: want.round, Endpoint: want.endpoint}
	until := NoLimit
	var payload []byte
	if r := want.r; r != nil {
		servers, payload, until = r.servers, r.datagram, w.origin+w.m.horizon(r)
		ref.Request = r.id
	} else {
		payload = w.reportOf(t, want, got.Payload)
	}
	place := (&modelRequest{servers: servers}).endpoints()[want.endpoint]
	server := servers[place]
	to := server.Endpoints[want.endpoint-slices.Index((&modelRequest{servers: servers}).endpoints(), place)]
	if got.Kind != want.kind || got.Ref != ref || got.Server != server.ID || got.To != to || got.Until != until || !bytes.Equal(got.Payload, payload) {
		w.fatalf(t, "the core sends %v %+v to %v at %v until %v, %d bytes\nwant %v %+v to %v at %v until %v, %d bytes",
			got.Kind, got.Ref, got.Server, got.To, got.Until, len(got.Payload), want.kind, ref, server.ID, to, until, len(payload))
	}
	if got.Kind != SendReport {
		w.checkRules(t, now, got)
	}
	w.given = append(w.given, modelGiven{*want, got.Ref})
	if want.kind == SendReplay {
		want.r.replayed = max(want.r.replayed, want.round)
	}
}

// checkRules is what must hold of a request's datagram, whatever the model says.
func (w *world) checkRules(t *rapid.T, now time.Duration, got *Send) {
	r := w.first[got.Ref.Request]
	if w.origin+now >= got.Until {
		w.fatalf(t, "%+v is sent at %v, its horizon is %v", got.Ref, now, got.Until-w.origin)
	}
	replays := 0
	for _, g := range w.given {
		if g.ref == got.Ref {
			w.fatalf(t, "%+v is sent twice", got.Ref)
		}
		if g.ref.Request == got.Ref.Request && g.ref.Endpoint == got.Ref.Endpoint && g.ref.Kind == SendReplay {
			replays++
		}
	}
	if got.Kind != SendReplay {
		return
	}
	if replays >= w.m.plan.policy.Replays {
		w.fatalf(t, "replay %d of %+v", replays+1, got.Ref)
	}
	for _, e := range w.m.log {
		if e.r == r && e.deed == deedDatagram && e.verdict.Valid() && e.datagram.server == got.Server {
			w.fatalf(t, "%+v goes to %v, which has answered", got.Ref, got.Server)
		}
	}
}

// pollEvents takes all events. A second poll lets go of the last completion.
func (w *world) pollEvents(t *rapid.T) {
	for _, ev := range drainEvents(w.c) {
		switch {
		case ev.Kind == EventCompleted && len(w.ends) > 0:
			w.compareCompletion(t, &ev.Completion, w.ends[0])
			w.ends = w.ends[1:]
		case ev.Kind == EventSteer && len(w.steers) > 0:
			if ev.Socket != w.steers[0] {
				w.fatalf(t, "socket %d is to change, want %d", ev.Socket, w.steers[0])
			}
			w.steers = w.steers[1:]
		case ev.Kind == EventMembershipChanged && len(w.change) > 0:
			if want := w.change[0]; len(ev.Membership) != want.Servers || ev.Discovered != *want {
				w.fatalf(t, "membership %+v, %+v; want %+v", ev.Membership, ev.Discovered, *want)
			}
			w.change = w.change[1:]
		default:
			w.fatalf(t, "event %v: %+v", ev.Kind, ev)
		}
	}
	if len(w.ends) > 0 || len(w.steers) > 0 || len(w.change) > 0 {
		w.fatalf(t, "nothing is said of %d completions, %d sockets, %d memberships", len(w.ends), len(w.steers), len(w.change))
	}
}

func (w *world) compareCompletion(t *rapid.T, got *Completion, r *modelRequest) {
	if w.completed[got.Request]++; w.completed[got.Request] > 1 {
		w.fatalf(t, "%d is completed twice", got.Request)
	}
	want := w.m.completion(r)
	rounds := map[int]bool{}
	for _, g := range w.given {
		if g.send.r == r && g.send.kind == SendReplay {
			rounds[g.send.round] = true
		}
	}
	want.Replays = len(rounds)
	if err := got.Err; !errors.Is(err, want.Err) || err != nil && want.Err == nil {
		w.fatalf(t, "completed with %v, want %v", err, want.Err)
	}
	got.Err, want.Err = nil, nil
	if !reflect.DeepEqual(*got, want) { //nolint:govet // errors were compared
		w.fatalf(t, "completion %+v\nwant       %+v", *got, want)
	}
}

func (w *world) compareDeadline(t *rapid.T) {
	var want time.Duration
	found := false
	for _, r := range w.m.requests {
		if d, ok := w.m.deadline(r, len(w.m.log)); ok && (!found || d < want) {
			want, found = d, true
		}
	}
	got, ok := w.c.Deadline()
	if ok != found || ok && got != w.origin+want {
		w.fatalf(t, "the deadline is %v (%v), want %v (%v)", got-w.origin, ok, want, found)
	}
}

// finish lets everything end: whatever was accepted was completed once, unless
// it was canceled or the core closed.
func (w *world) finish(t *rapid.T) {
	w.unsent, w.unread = 0, 0
	w.settle(t)
	w.now += 2 * w.m.plan.horizon()
	w.hand(modelEntry{deed: deedTimer, at: w.now})
	w.c.HandleTimer(w.at(w.now))
	w.settle(t)
	for id, r := range w.first {
		withdrawn := w.m.closed() || slices.ContainsFunc(w.m.log, func(e modelEntry) bool { return e.deed == deedCancel && e.r == r })
		if w.completed[id] == 0 && !withdrawn {
			w.fatalf(t, "%d is never completed", id)
		}
	}
	if _, ok := w.c.Deadline(); ok || len(w.wanted) > 0 || w.stats.InFlight+w.stats.Kept > 0 {
		w.fatalf(t, "after all horizons there is a deadline (%v), or something is left: %+v", ok, w.stats)
	}
}
