package core

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/policy"
)

// model is the algorithm of docs/policy.md once more, written to be read and not
// to be fast: lists that are searched, sums that are added up each time.
type model struct {
	policy   policy.Policy
	now      time.Duration
	requests []*modelRequest
	said     []string // since the last call began
}

type modelRequest struct {
	name      string
	t0        time.Duration
	asked     []string // servers, oldest first
	endpoints map[string]int
	answers   []modelAnswer // valid first answers
	entered   int           // round
	end       string        // how it ended
	gone      bool          // past its horizon
	failed    map[int]bool  // first sends, by endpoint
}

type modelAnswer struct {
	server string
	grants bool
	at     time.Duration
}

func (m *model) start(k int) time.Duration {
	var units uint64
	for i := range min(k, m.policy.Replays+1) {
		units += m.policy.Gap.At(i)
	}
	if k > m.policy.Replays+1 {
		units += uint64(m.policy.FinalReceive)
	}
	return time.Duration(units) * m.policy.Unit
}

func (m *model) horizon(r *modelRequest) time.Duration { return r.t0 + m.start(m.policy.Replays+2) }

// interval is the round, or N+1, that an instant of a request lies in.
func (m *model) interval(r *modelRequest, t time.Duration) int {
	k := 0
	for k <= m.policy.Replays && r.t0+m.start(k+1) <= t {
		k++
	}
	return k
}

// instant is when a request with answers is decided.
func (m *model) instant(r *modelRequest) time.Duration {
	k := m.interval(r, r.answers[0].at)
	units := uint64(m.policy.FinalPreference)
	if k <= m.policy.Replays {
		units = m.policy.Preference.At(k)
	}
	return max(r.t0+m.start(k)+time.Duration(units)*m.policy.Unit, r.answers[0].at)
}

// deadline is what a request waits for, false when for nothing.
func (m *model) deadline(r *modelRequest) (time.Duration, bool) {
	switch {
	case r.gone:
		return 0, false
	case r.end != "":
		return m.horizon(r), true
	case len(r.answers) > 0:
		return m.instant(r), true
	case r.entered > m.policy.Replays:
		return m.horizon(r), true
	}
	return r.t0 + m.start(r.entered+1), true
}

func (m *model) sayf(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

// send says that a request is sent to the servers that have not answered.
func (m *model) send(r *modelRequest, kind SendKind) {
	for _, s := range r.asked {
		if slices.ContainsFunc(r.answers, func(a modelAnswer) bool { return a.server == s }) {
			continue
		}
		for e := range r.endpoints[s] {
			m.sayf("%v %s %s.%d", kind, r.name, s, e)
		}
	}
}

func (m *model) decide(r *modelRequest) {
	best := r.answers[0]
	for _, a := range r.answers {
		if slices.Index(r.asked, a.server) < slices.Index(r.asked, best.server) {
			best = a
		}
	}
	if m.policy.CompletionDelivery && m.now < m.horizon(r) {
		m.send(r, SendCompletion)
	}
	outcome := Rejected
	if best.grants {
		outcome = Granted
	}
	r.end = fmt.Sprintf("%s %v by %s round %d after %v", r.name, outcome, best.server, m.interval(r, best.at), m.now-r.t0)
	m.sayf("%s", r.end)
	r.gone = m.now >= m.horizon(r)
}

// answer judges an answer and returns the verdict.
func (m *model) answer(r *modelRequest, server string, grants, valid bool) string {
	if r.gone {
		return "unknown"
	}
	if r.end == "" && len(r.answers) > 0 && m.instant(r) <= m.now {
		m.decide(r)
	}
	switch {
	case m.now >= m.horizon(r):
		return "expired"
	case !valid:
		return "forged"
	case !slices.Contains(r.asked, server):
		return "stranger"
	case slices.ContainsFunc(r.answers, func(a modelAnswer) bool { return a.server == server }):
		return "duplicate"
	}
	r.answers = append(r.answers, modelAnswer{server, grants, m.now})
	if r.end != "" {
		return "late"
	}
	if server == r.asked[0] || m.instant(r) <= m.now {
		m.decide(r)
	}
	return "counted"
}

// timer runs everything that is due.
func (m *model) timer() {
	var due []*modelRequest
	for _, r := range m.requests {
		if at, ok := m.deadline(r); ok && at <= m.now {
			due = append(due, r)
		}
	}
	slices.SortStableFunc(due, func(a, b *modelRequest) int {
		x, _ := m.deadline(a)
		y, _ := m.deadline(b)
		return int(x - y)
	})
	for _, r := range due {
		switch {
		case r.end != "":
			r.gone = true
		case len(r.answers) > 0:
			m.decide(r)
		case m.now >= m.horizon(r):
			r.end = fmt.Sprintf("%s %v round %d after %v", r.name, TimedOut, m.policy.Replays+1, m.now-r.t0)
			r.gone = true
			m.sayf("%s", r.end)
		default:
			r.entered = m.interval(r, m.now)
			if r.entered <= m.policy.Replays {
				m.send(r, SendReplay)
			}
		}
	}
}

// fail tells of the failure of a first send.
func (m *model) fail(r *modelRequest, endpoint int) {
	if r.gone {
		return
	}
	r.failed[endpoint] = true
	total := 0
	for _, n := range r.endpoints {
		total += n
	}
	if r.end == "" && len(r.answers) == 0 && len(r.failed) == total && m.now < r.t0+m.start(1) {
		r.end = fmt.Sprintf("%s %v round 0 after %v", r.name, SendFailed, m.now-r.t0)
		m.sayf("%s", r.end)
	}
}

// schedules of small numbers, so that instants of different rounds meet.
func schedule(t *rapid.T, label string, low, high uint32) policy.Schedule {
	v := rapid.Uint32Range(low, high)
	switch rapid.IntRange(0, 2).Draw(t, label+" kind") {
	case 0:
		return policy.Fixed(v.Draw(t, label))
	case 1:
		initial := v.Draw(t, label)
		return policy.Linear(initial, rapid.Uint32Range(1, 2).Draw(t, label+" step"), initial+rapid.Uint32Range(0, 3).Draw(t, label+" room"))
	}
	return policy.List(rapid.SliceOfN(v, 1, 3).Draw(t, label)...)
}

// randomPolicy draws a policy that compiles.
func randomPolicy(t *rapid.T) policy.Policy {
	p := policy.Policy{
		Unit:               time.Millisecond,
		Replays:            rapid.IntRange(0, 4).Draw(t, "replays"),
		Gap:                schedule(t, "gap", 1, 4),
		Preference:         schedule(t, "preference", 0, 2),
		FinalReceive:       rapid.Uint32Range(0, 3).Draw(t, "final"),
		CompletionDelivery: rapid.Bool().Draw(t, "completion delivery"),
	}
	p.FinalPreference = rapid.Uint32Range(0, p.FinalReceive).Draw(t, "final preference")
	if _, err := p.Compile(); err != nil {
		p.Preference = policy.Fixed(rapid.Uint32Range(0, 1).Draw(t, "less preference"))
	}
	return p
}

// world is a core and its model, told the same.
type world struct {
	m       *model
	c       *Core
	r       *responder
	tb      testing.TB
	sent    map[string]int           // datagrams by request and kind
	ended   map[string]int           // completions by request
	id      map[string]RequestID     // handles
	packets map[string][]byte        // first sends
	horizon map[string]time.Duration // of requests
}

// TestAgainstModel drives a core and the model with the same calls, at instants
// that fall together often, and compares every datagram, verdict, completion and
// deadline. What must hold of any history is checked beside.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := randomPolicy(rt)
		w := &world{
			m: &model{policy: p}, tb: t, sent: map[string]int{}, ended: map[string]int{},
			id: map[string]RequestID{}, packets: map[string][]byte{}, horizon: map[string]time.Duration{},
		}
		w.c = newTestCore(t, 0, func(cfg *Config) { cfg.Policy = p })
		w.r = newResponder(t, w.c.cfg.Key)
		w.members(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"submit":  w.submit,
			"answer":  w.answer,
			"answer2": w.answer, // as often again
			"timer":   func(*rapid.T) { w.c.HandleTimer(at(w.m.now)); w.m.timer() },
			"fail":    w.fail,
			"members": w.members,
			"wait":    w.wait,
			"":        w.compare,
		})
	})
}

// wait lets time pass: to the next deadline, a little past it, or anywhere.
func (w *world) wait(t *rapid.T) {
	next := w.m.now + time.Duration(rapid.IntRange(0, 5000).Draw(t, "µs"))*time.Microsecond
	if deadline, ok := w.c.Deadline(); ok && rapid.IntRange(0, 3).Draw(t, "exact") > 0 {
		next = deadline - at(0).Mono + time.Duration(rapid.IntRange(-1, 1).Draw(t, "ns"))
	}
	if next > w.m.now {
		w.m.now = next
	}
	if rapid.IntRange(0, 9).Draw(t, "back") == 0 {
		w.c.HandleDatagram(at(w.m.now), 1, nil) // the core has seen this instant
		w.c.HandleTimer(at(0))                  // which is now
		w.m.timer()
	}
}

// members changes the membership of later requests.
func (w *world) members(t *rapid.T) {
	var servers []Server
	for i := range rapid.IntRange(1, 4).Draw(t, "servers") {
		if i > 0 && rapid.Bool().Draw(t, "skipped") {
			continue
		}
		s := testServers(i + 1)[i]
		if rapid.Bool().Draw(t, "two addresses") {
			s.Endpoints = append(s.Endpoints, s.Endpoints[0])
			s.Endpoints[1] = netipNext(s.Endpoints[1])
		}
		servers = append(servers, s)
	}
	if err := w.c.SetMembership(at(w.m.now), servers); err != nil {
		t.Fatal(err)
	}
}

func (w *world) submit(t *rapid.T) {
	r := &modelRequest{
		name: fmt.Sprintf("r%d", len(w.m.requests)), t0: w.m.now, endpoints: map[string]int{}, failed: map[int]bool{},
	}
	for _, s := range w.c.Membership() {
		r.asked = append(r.asked, serverName(s.ID))
		r.endpoints[serverName(s.ID)] = len(s.Endpoints)
	}
	id, err := w.c.Submit(at(w.m.now), askOne())
	if err != nil {
		t.Fatal(err)
	}
	w.id[r.name] = id
	w.packets[r.name] = slices.Clone(w.c.flights.find(id).datagram)
	w.m.requests = append(w.m.requests, r)
	w.horizon[r.name] = w.m.horizon(r)
	w.m.send(r, SendFirst)
}

func (w *world) request(t *rapid.T) *modelRequest {
	if len(w.m.requests) == 0 {
		return nil
	}
	// The latest ones: the others are gone.
	n := len(w.m.requests)
	return w.m.requests[rapid.IntRange(max(0, n-4), n-1).Draw(t, "request")]
}

func (w *world) answer(t *rapid.T) {
	r := w.request(t)
	if r == nil {
		return
	}
	server := rapid.IntRange(0, 4).Draw(t, "server")
	grants := rapid.Bool().Draw(t, "grants")
	valid := rapid.IntRange(0, 5).Draw(t, "valid") > 0
	say := reply{}
	if !grants {
		say.deficit = 1
	}
	b := w.r.answer(w.tb, w.packets[r.name], serverID(server), say)
	if !valid {
		b[len(b)-1] ^= 1
	}
	got := w.c.HandleDatagram(at(w.m.now), 1, b).String()
	if want := w.m.answer(r, serverName(serverID(server)), grants, valid); got != want {
		t.Fatalf("%s answers %s at %v: %s, want %s", serverName(serverID(server)), r.name, w.m.now, got, want)
	}
}

func (w *world) fail(t *rapid.T) {
	r := w.request(t)
	if r == nil {
		return
	}
	total := 0
	for _, n := range r.endpoints {
		total += n
	}
	endpoint := rapid.IntRange(0, total-1).Draw(t, "endpoint")
	w.c.HandleSendFailure(at(w.m.now), SendRef{Kind: SendFirst, Request: w.id[r.name], Endpoint: endpoint}, errors.New("unreachable"))
	w.m.fail(r, endpoint)
}

// compare drains the core and compares what it says with what the model does.
func (w *world) compare(t *rapid.T) {
	var got []string
	for _, s := range drainSends(w.c, at(w.m.now)) {
		r := w.named(s.Ref.Request)
		got = append(got, fmt.Sprintf("%v %s %s.%d", s.Kind, r, serverName(s.Server), endpointOf(s)))
		w.sent[fmt.Sprintf("%s %v %v", r, s.Kind, s.To)]++
		if w.m.now >= w.horizon[r] {
			t.Fatalf("%v of %s at %v, its horizon is %v", s.Kind, r, w.m.now, w.horizon[r])
		}
		if !bytes.Equal(s.Payload, w.packets[r]) {
			t.Fatalf("%v of %s does not send the same bytes", s.Kind, r)
		}
		if n := w.sent[fmt.Sprintf("%s %v %v", r, SendReplay, s.To)]; n > w.m.policy.Replays {
			t.Fatalf("replay %d of %s to %v", n, r, s.To)
		}
	}
	for _, ev := range drainEvents(w.c) {
		if ev.Kind != EventCompleted {
			continue
		}
		r := w.named(ev.Completion.Request)
		if w.ended[r]++; w.ended[r] > 1 {
			t.Fatalf("%s is completed twice", r)
		}
		got = append(got, sayOutcome(r, &ev.Completion))
	}
	// A runtime reads sends before events: the model says both as they come.
	want := slices.Clone(w.m.said)
	slices.SortStableFunc(want, func(a, b string) int { return sayOrder(a) - sayOrder(b) })
	if !slices.Equal(got, want) {
		t.Fatalf("at %v the core says\n%s\nwant\n%s", w.m.now, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	w.m.said = nil
	w.compareDeadline(t)
}

func (w *world) compareDeadline(t *rapid.T) {
	var want time.Duration
	found := false
	for _, r := range w.m.requests {
		if deadline, ok := w.m.deadline(r); ok && (!found || deadline < want) {
			want, found = deadline, true
		}
	}
	got, ok := w.c.Deadline()
	if ok != found || ok && got != at(want).Mono {
		t.Fatalf("at %v the deadline is %v (%v), want %v (%v)", w.m.now, got-at(0).Mono, ok, want, found)
	}
	undecided := 0
	for _, r := range w.m.requests {
		if r.end == "" {
			undecided++
		}
	}
	if s := w.c.Stats(); s.InFlight != undecided {
		t.Fatalf("%d in flight, want %d", s.InFlight, undecided)
	}
}

func (w *world) named(id RequestID) string {
	for name, other := range w.id {
		if other == id {
			return name
		}
	}
	return "?"
}

func sayOutcome(name string, done *Completion) string {
	by := ""
	if done.Outcome == Granted || done.Outcome == Rejected {
		by = " by " + serverName(done.Server)
	}
	return fmt.Sprintf("%s %v%s round %d after %v", name, done.Outcome, by, done.Round, done.Elapsed)
}

// sayOrder tells sends from completions.
func sayOrder(s string) int {
	if strings.HasPrefix(s, "r") && !strings.HasPrefix(s, "replay") {
		return 1
	}
	return 0
}

// TestServerNamesAreOrdered is what the model's comparison of names stands on.
func TestServerNamesAreOrdered(t *testing.T) {
	var last ident.ServerID
	for i := range 26 {
		if id := serverID(i); i > 0 && !last.Older(id) {
			t.Fatalf("server %d is not younger than the one before", i)
		}
		last = serverID(i)
	}
}
