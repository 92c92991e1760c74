package core

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/wire"
)

// The calls that TestAgainstModel makes.

// wait lets time pass: to an instant at which something happens, or next to it,
// or anywhere.
func (w *world) wait(t *rapid.T) {
	next := w.now + time.Duration(rapid.IntRange(0, 5000).Draw(t, "µs"))*time.Microsecond
	if instants := w.instants(); len(instants) > 0 && rapid.IntRange(0, 4).Draw(t, "exact") > 0 {
		i := rapid.IntRange(0, len(instants)-1).Draw(t, "instant")
		next = instants[i] + time.Duration(rapid.SampledFrom([]int{0, 0, -1, 1}).Draw(t, "ns"))
	}
	w.now = max(w.now, next)
}

// instants are the bounds of intervals and preferences of the latest requests,
// and when the latest sockets begin to hear, from now on.
func (w *world) instants() (list []time.Duration) {
	for _, r := range w.m.requests[max(0, len(w.m.requests)-4):] {
		for _, offsets := range [][]time.Duration{w.m.plan.starts, w.m.plan.ends} {
			for _, d := range offsets {
				list = append(list, r.t0+d)
			}
		}
		if due, ok := w.m.owed(r, len(w.m.log)); ok {
			list = append(list, due)
		}
	}
	for i := range w.m.log {
		if e := &w.m.log[i]; e.deed == deedRebound {
			list = append(list, e.at+time.Second)
		}
	}
	list = slices.DeleteFunc(list, func(d time.Duration) bool { return d < w.now })
	slices.Sort(list)
	return slices.Compact(list)
}

// deadline is a timer that fires when it should, or a hair beside.
func (w *world) deadline(t *rapid.T) {
	if d, ok := w.c.Deadline(); ok {
		w.now = max(w.now, d-w.origin+time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(t, "ns")))
	}
	w.timer(t)
}

func (w *world) timer(t *rapid.T) {
	said := w.tick(t)
	w.hand(modelEntry{deed: deedTimer, at: said})
	w.c.HandleTimer(w.at(said))
	w.settle(t)
}

// members changes the membership of later requests.
func (w *world) members(t *rapid.T) {
	said := w.tick(t)
	servers := drawMembers(t)
	before := w.m.members()
	closed := w.m.closed()
	err := w.c.SetMembership(w.at(said), servers)
	if closed {
		servers = before
	}
	w.hand(modelEntry{deed: deedMembers, at: said, servers: servers})
	if errors.Is(err, ErrClosed) != closed || err != nil && !closed {
		w.fatalf(t, "SetMembership: %v", err)
	}
	after := w.m.members()
	same := func(a, b Server) bool { return a.ID == b.ID && slices.Equal(a.Endpoints, b.Endpoints) }
	if !slices.EqualFunc(before, after, same) {
		w.stats.MembershipChanges++
		w.change = append(w.change, &Discovered{Servers: len(after), Endpoints: len((&modelRequest{servers: after}).endpoints())})
	}
	if got := w.c.Membership(); !slices.EqualFunc(got, after, same) {
		w.fatalf(t, "membership %+v, want %+v", got, after)
	}
	w.settle(t)
}

func (w *world) submit(t *rapid.T) {
	said := w.tick(t)
	ask := drawAsk(t, w.c.cfg.Layout)
	lent := Request{Guards: slices.Clone(ask.Guards), Resources: slices.Clone(ask.Resources), Label: ask.Label}
	want := w.m.submitError(&ask)
	id, err := w.c.Submit(w.at(said), &lent)
	clear(lent.Guards) // nothing is kept of it
	clear(lent.Resources)
	if !errors.Is(err, want) || err != nil && want == nil {
		w.fatalf(t, "Submit: %v, want %v", err, want)
	}
	if err != nil {
		w.hand(modelEntry{deed: deedSubmit, at: said})
		w.settle(t)
		return
	}
	r := &modelRequest{ask: ask, id: id}
	if w.first[id] != nil || id == 0 {
		w.fatalf(t, "handle %d is given twice", id)
	}
	w.first[id] = r
	w.stats.Submitted++
	if r.empty() {
		w.stats.Empty++
	} else {
		r.datagram = bytes.Clone(w.c.flights.find(id).datagram)
		w.checkFirst(t, r, w.at(said).Wall)
		w.checkIdentity(t, r.identity())
	}
	w.hand(modelEntry{deed: deedSubmit, at: said, r: r})
	w.settle(t)
}

func (w *world) checkIdentity(t *rapid.T, id wire.UniqueID) {
	if w.identity[id] || id[6]>>4 != 4 || id[8]>>6 != 2 {
		w.fatalf(t, "identity %v is no random UUID, or comes twice", id)
	}
	w.identity[id] = true
}

// latest draws one of the latest requests that asked somebody, seldom one that is
// forgotten.
func (w *world) latest(t *rapid.T) *modelRequest {
	asked := slices.DeleteFunc(slices.Clone(w.m.requests), (*modelRequest).empty)
	known := slices.DeleteFunc(slices.Clone(asked), func(r *modelRequest) bool { return w.m.forgotten(r, len(w.m.log)) })
	if len(known) > 0 && rapid.IntRange(0, 9).Draw(t, "forgotten") < 9 {
		asked = known
	}
	if len(asked) == 0 {
		return nil
	}
	n := len(asked) - 1
	return asked[n-rapid.IntRange(0, min(3, n)).Draw(t, "request")]
}

func (w *world) answer(t *rapid.T) {
	if r := w.latest(t); r != nil {
		d, b := w.drawDatagram(t, r)
		w.handDatagram(t, modelHanded{r, d, b})
	}
}

// answerAgain hands in what was handed in before: the network doubles and delays.
func (w *world) answerAgain(t *rapid.T) {
	if n := len(w.handed); n > 0 {
		w.handDatagram(t, w.handed[rapid.IntRange(max(0, n-8), n-1).Draw(t, "again")])
	}
}

func (w *world) handDatagram(t *rapid.T, h modelHanded) {
	said := w.tick(t)
	if !slices.ContainsFunc(w.sockets, func(s modelSocket) bool {
		return s.id == h.d.socket && (!s.retired || s.until > h.r.since)
	}) {
		return
	}
	e := w.hand(modelEntry{deed: deedDatagram, at: said, r: h.r, datagram: h.d})
	lent := bytes.Clone(h.b)
	got := w.c.HandleDatagram(w.at(said), h.d.socket, lent)
	if !bytes.Equal(lent, h.b) {
		w.fatalf(t, "the datagram was changed")
	}
	clear(lent) // nothing is kept of it
	if got != e.verdict {
		w.fatalf(t, "%+v: %v, want %v", *h.d, got, e.verdict)
	}
	w.handed = append(w.handed, h)
	w.settle(t)
}

// fail tells of the failure of a datagram that was given out, perhaps again, or
// of one that never was.
func (w *world) fail(t *rapid.T) {
	if len(w.given) == 0 {
		return
	}
	w.pollEvents(t) // or the core still knows requests that are forgotten
	n := len(w.given)
	g := w.given[rapid.IntRange(max(0, n-16), n-1).Draw(t, "failed")]
	if rapid.IntRange(0, 5).Draw(t, "never was") < 5 {
		w.failed(t, g)
		return
	}
	if g.send.r == nil {
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "what is wrong") {
	case 0:
		g.ref.Endpoint = -1
	case 1:
		g.ref.Endpoint = len(g.send.r.endpoints())
	case 2:
		g.ref.Kind = SendKind(rapid.SampledFrom([]int{0, SendKinds}).Draw(t, "kind"))
	case 3:
		g.ref.Request = rapid.SampledFrom([]RequestID{0, g.ref.Request ^ 1<<63, 1 << 27}).Draw(t, "request")
	case 4:
		g.ref.Kind = SendReplay
		g.ref.Round = rapid.SampledFrom([]int{-1, 0, w.m.plan.policy.Replays + 2}).Draw(t, "round")
	case 5:
		g.ref.Kind = SendReplay
		g.ref.Round = w.m.entered(g.send.r, len(w.m.log)) + 1
	}
	w.c.HandleSendFailure(w.at(w.now), g.ref, errors.New("never was"))
	w.hand(modelEntry{deed: deedPoll, at: w.now}) // of the time only
	w.settle(t)
}

// failAll tells of the failure of a request's first sends, perhaps not all.
func (w *world) failAll(t *rapid.T) {
	r := w.latest(t)
	if r == nil {
		return
	}
	w.pollEvents(t)
	spare := rapid.IntRange(-3, len(r.endpoints())-1).Draw(t, "spared")
	for _, g := range slices.Clone(w.given) {
		if g.send.r == r && g.send.kind == SendFirst && g.send.endpoint != spare {
			w.failed(t, g)
		}
	}
}

func (w *world) failed(t *rapid.T, g modelGiven) {
	said := w.tick(t)
	w.told.failure++
	err := fmt.Errorf("failure %d", w.told.failure)
	e := w.hand(modelEntry{deed: deedFailure, at: said, r: g.send.r, send: g.send, err: err})
	if e.counts {
		w.stats.SendFailures[g.send.kind]++
	}
	w.c.HandleSendFailure(w.at(said), g.ref, err)
	w.settle(t)
}

func (w *world) cancel(t *rapid.T) {
	r := w.latest(t)
	if r == nil || rapid.IntRange(0, 5).Draw(t, "now") < 5 {
		return
	}
	said := w.tick(t)
	undecided := r.end.entry < 0
	e := modelEntry{deed: deedCancel, at: said}
	if undecided {
		e.r = r
		w.stats.Canceled++
	}
	w.hand(e)
	if got := w.c.Cancel(w.at(said), r.id); got != undecided {
		w.fatalf(t, "Cancel: %v, want %v", got, undecided)
	}
	w.settle(t)
}

// close ends everything, in few runs.
func (w *world) close(t *rapid.T) {
	if rapid.IntRange(0, 29).Draw(t, "now") < 29 {
		return
	}
	said := w.tick(t)
	w.hand(modelEntry{deed: deedClose, at: said})
	w.c.Close(w.at(said))
	w.settle(t)
}

func (w *world) report(t *rapid.T) {
	said := w.tick(t)
	n := 1 + max(0, rapid.IntRange(-80, 80).Draw(t, "observations")) // more than one datagram holds, at times
	var want error
	switch {
	case w.m.closed():
		want = ErrClosed
	case len(w.m.members()) == 0:
		want = ErrNoServers
	}
	err := w.c.Report(w.at(said), observations(n))
	if !errors.Is(err, want) || err != nil && want == nil {
		w.fatalf(t, "Report: %v, want %v", err, want)
	}
	e := modelEntry{deed: deedReport, at: said, servers: w.m.members()}
	room := wire.MaxObservations(w.r.credential.Auth(), w.c.cfg.Layout)
	for left := n; left > 0 && err == nil; left -= room {
		e.sizes = append(e.sizes, min(left, room))
		w.stats.Observations += uint64(min(left, room))
	}
	w.hand(e)
	w.settle(t)
}

// reportOf returns the datagram of a part of a report: the first that was sent,
// which is held against what was reported.
func (w *world) reportOf(t *rapid.T, s *modelSend, payload []byte) []byte {
	part := [2]int{s.report, s.part}
	if w.reports[part] == nil {
		w.reports[part] = bytes.Clone(payload)
		h, pdu := w.r.open(w.tb, payload)
		var v wire.ReportView
		if err := wire.ParseReport(pdu, &v); err != nil {
			t.Fatal(err)
		}
		if want := w.m.log[s.report].sizes[s.part]; v.Len() != want {
			w.fatalf(t, "%d observations in part %d, want %d", v.Len(), s.part, want)
		}
		w.checkIdentity(t, h.UniqueID)
	}
	return w.reports[part]
}

// rebound replaces a socket, asked or not, or keeps it because no port is free.
func (w *world) rebound(t *rapid.T) {
	var current []int
	for i := range w.sockets {
		if !w.sockets[i].retired {
			current = append(current, i)
		}
	}
	s := &w.sockets[rapid.SampledFrom(current).Draw(t, "socket")]
	said := w.tick(t)
	e := modelEntry{deed: deedRebound, at: said, old: s.id, replacement: s.id}
	if rapid.IntRange(0, 3).Draw(t, "kept") < 3 {
		w.told.socket++
		e.replacement = SocketID(w.told.socket)
		s.retired, s.until = true, len(w.m.log)
		w.sockets = append(w.sockets, modelSocket{id: e.replacement})
	}
	w.hand(e)
	w.c.Rebound(w.at(said), e.old, e.replacement)
	w.settle(t)
}

// hold leaves sends or events unpolled for some calls, or polls a few.
func (w *world) hold(t *rapid.T) {
	if rapid.Bool().Draw(t, "some") {
		w.poll(t, w.tick(t), rapid.IntRange(1, 3).Draw(t, "polls"))
	}
	w.unsent = rapid.IntRange(0, 8).Draw(t, "unsent")
	w.unread = rapid.IntRange(0, 8).Draw(t, "unread")
}

// wallClock sets the wall clock: it stamps datagrams, and no more.
func (w *world) wallClock(t *rapid.T) {
	w.step = rapid.SampledFrom([]time.Duration{0, time.Hour, -time.Hour, -100 * 365 * 24 * time.Hour}).Draw(t, "step")
}

// fatalf fails with the history.
func (w *world) fatalf(t *rapid.T, format string, args ...any) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "policy %v, capacity %d, %v, %v\n", w.m.plan.policy, w.m.capacity, w.r.credential.Auth(), w.c.cfg.Layout)
	names := [...]string{"timer", "submit", "datagram", "cancel", "failure", "poll", "members", "report", "rebound", "close"}
	for i, e := range w.m.log {
		fmt.Fprintf(&b, "%3d %10v %s", i, e.at, names[e.deed])
		if e.r != nil {
			fmt.Fprintf(&b, " of request %d at %v to %d servers", e.r.since, e.r.t0, len(e.r.servers))
		}
		if e.datagram != nil {
			fmt.Fprintf(&b, " %+v: %v", *e.datagram, e.verdict)
		}
		b.WriteByte('\n')
	}
	t.Fatalf("%s\n%s", b.String(), fmt.Sprintf(format, args...))
}
