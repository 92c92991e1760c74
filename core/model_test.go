package core

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// model is docs/policy.md once more, written to be read and not to be fast. What
// it keeps is what was handed in, in one list. What must have come of it is found
// by searching the list, anew after each entry; nothing is carried along.
type model struct {
	plan     modelPlan
	capacity int // requests in flight
	log      []modelEntry
	requests []*modelRequest
}

// modelDeed is what a caller did.
type modelDeed uint8

const (
	deedTimer modelDeed = iota
	deedSubmit
	deedDatagram
	deedCancel
	deedFailure
	deedPoll
	deedMembers
	deedReport
	deedRebound
	deedClose
)

// modelEntry is one call of a caller.
type modelEntry struct {
	deed modelDeed
	at   time.Duration // never before an earlier entry's
	r    *modelRequest // of a submit, datagram, cancel or failure; nil: none that is known

	datagram *modelDatagram
	verdict  DatagramVerdict // on the datagram
	steered  bool            // by the datagram
	send     modelSend       // that failed
	counts   bool            // the failure does
	err      error           // of the failure
	servers  []Server        // the members from now on
	sizes    []int           // observations in each datagram of a report

	old, replacement SocketID
}

// modelRequest is a request that was accepted.
type modelRequest struct {
	since   int // its entry
	t0      time.Duration
	servers []Server // oldest first
	ask     Request

	// What the log says of it, worked out anew after each entry.
	answers []int // entries: each server's first valid answer before the horizon
	end     modelEnd

	// Known to the one who asked.
	id       RequestID
	datagram []byte
	replayed int // the last round of which a send was given out
}

// modelEnd is how and where a request ended.
type modelEnd struct {
	entry   int     // -1: it has not
	outcome Outcome // 0: canceled, or closed
	by      int     // the entry of the answer that decided
	early   bool    // the entry's datagram was judged after the end
}

// modelSend is one datagram to be sent. Endpoints count over all servers.
type modelSend struct {
	kind     SendKind
	r        *modelRequest // nil for a report
	round    int
	endpoint int
	report   int // entry of a report
	part     int // of a report
}

// hand appends a call. A time that goes back counts as the last time.
func (m *model) hand(e modelEntry) *modelEntry {
	for i := range m.log {
		e.at = max(e.at, m.log[i].at)
	}
	m.log = append(m.log, e)
	i := len(m.log) - 1
	if e.deed == deedSubmit && e.r != nil {
		e.r.since, e.r.t0, e.r.servers = i, e.at, m.members()
		m.requests = append(m.requests, e.r)
	}
	if e.deed == deedFailure {
		m.log[i].counts = m.failureCounts(i)
	}
	for _, r := range m.requests {
		r.answers = m.answersTo(r)
		r.end = m.endOf(r)
	}
	if e.deed == deedDatagram {
		m.log[i].verdict = m.verdict(i)
		m.log[i].steered = m.steers(i)
	}
	return &m.log[i]
}

func (m *model) horizon(r *modelRequest) time.Duration { return r.t0 + m.plan.horizon() }

// members are the servers that are known, oldest first.
func (m *model) members() []Server {
	var servers []Server
	for i := range m.log {
		if m.log[i].deed == deedMembers {
			servers = slices.Clone(m.log[i].servers)
		}
	}
	slices.SortFunc(servers, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	for i := range servers {
		servers[i].Endpoints = slices.Clone(servers[i].Endpoints)
		slices.SortFunc(servers[i].Endpoints, netip.AddrPort.Compare)
	}
	return servers
}

func (m *model) closed() bool {
	return slices.ContainsFunc(m.log, func(e modelEntry) bool { return e.deed == deedClose })
}

// submitError is what a Submit would fail with now.
func (m *model) submitError(ask *Request) error {
	switch {
	case m.closed():
		return ErrClosed
	case len(ask.Guards)+len(ask.Resources) == 0:
		return nil
	case len(m.members()) == 0:
		return ErrNoServers
	case m.inFlight() >= m.capacity:
		return ErrTooManyInFlight
	}
	return nil
}

// inFlight counts undecided requests.
func (m *model) inFlight() (n int) {
	for _, r := range m.requests {
		if r.end.entry < 0 && !r.empty() {
			n++
		}
	}
	return n
}

// kept counts ended requests whose identity is known.
func (m *model) kept() (n int) {
	for _, r := range m.requests {
		if r.end.entry >= 0 && !m.forgotten(r, len(m.log)) && !r.empty() {
			n++
		}
	}
	return n
}

// empty tells a request for nothing.
func (r *modelRequest) empty() bool { return len(r.ask.Guards)+len(r.ask.Resources) == 0 }

// age is a server's place in the snapshot, -1 for a stranger.
func (r *modelRequest) age(e *modelEntry) int {
	return slices.IndexFunc(r.servers, func(s Server) bool { return s.ID == e.datagram.server })
}

// endpoints lists for each endpoint the place of its server.
func (r *modelRequest) endpoints() (list []int) {
	for i, s := range r.servers {
		for range s.Endpoints {
			list = append(list, i)
		}
	}
	return list
}

// names tells a datagram that carries a request's identity.
func (e *modelEntry) names(r *modelRequest) bool {
	return e.deed == deedDatagram && e.r == r && e.datagram.flaw != flawNoise && e.datagram.flaw != flawIdentity
}

// answersTo finds each server's first valid answer before the horizon.
func (m *model) answersTo(r *modelRequest) (list []int) {
	for i := r.since + 1; i < len(m.log); i++ {
		e := &m.log[i]
		if e.deed == deedClose || e.at >= m.horizon(r) {
			break
		}
		if !e.names(r) || e.datagram.flaw != flawNone || r.age(e) < 0 {
			continue
		}
		same := func(j int) bool { return m.log[j].datagram.server == e.datagram.server }
		if !slices.ContainsFunc(list, same) {
			list = append(list, i)
		}
	}
	return list
}

// before are the answers that came before an entry.
func (r *modelRequest) before(entry int) []int {
	n := 0
	for n < len(r.answers) && r.answers[n] < entry {
		n++
	}
	return r.answers[:n]
}

// instant is when a request is decided whose first answer is this entry.
func (m *model) instant(r *modelRequest, first int) time.Duration {
	came := m.log[first].at
	return max(came, r.t0+m.plan.ends[m.plan.interval(came-r.t0)])
}

// endOf finds the entry that ended a request.
func (m *model) endOf(r *modelRequest) modelEnd {
	if r.empty() {
		return modelEnd{entry: r.since, outcome: Granted}
	}
	for i := r.since + 1; i < len(m.log); i++ {
		e := &m.log[i]
		held := r.before(i)
		with := r.before(i + 1) // this answer included, if it is one
		switch {
		case e.deed == deedClose, e.deed == deedCancel && e.r == r:
			return modelEnd{entry: i}
		case len(held) > 0 && m.instant(r, held[0]) <= e.at && (e.deed == deedTimer || e.names(r)):
			return m.decision(r, i, held)
		case e.deed == deedTimer && e.at >= m.horizon(r):
			return modelEnd{entry: i, outcome: TimedOut}
		case len(with) > len(held) && (r.age(e) == 0 || m.instant(r, with[0]) <= e.at):
			return m.decision(r, i, with)
		case e.deed == deedFailure && e.r == r && len(held) == 0 && e.at < r.t0+m.plan.starts[1] && m.hopeless(r, i):
			return modelEnd{entry: i, outcome: SendFailed}
		}
	}
	return modelEnd{entry: -1}
}

// decision is the end of a request by the oldest server's of some answers.
func (m *model) decision(r *modelRequest, entry int, answers []int) modelEnd {
	by := slices.MinFunc(answers, func(a, b int) int { return r.age(&m.log[a]) - r.age(&m.log[b]) })
	end := modelEnd{entry: entry, by: by, outcome: Rejected, early: !slices.Contains(answers, entry)}
	if granted, _, _ := results(&r.ask, m.log[by].datagram); granted {
		end.outcome = Granted
	}
	return end
}

// hopeless tells whether all first sends failed, with the failure of an entry.
func (m *model) hopeless(r *modelRequest, entry int) bool {
	failed := 0
	for i := r.since; i <= entry; i++ {
		if e := &m.log[i]; e.deed == deedFailure && e.counts && e.r == r && e.send.kind == SendFirst {
			failed++
		}
	}
	return failed == len(r.endpoints())
}

// failureCounts tells whether an entry's failure is new and of a known request.
func (m *model) failureCounts(entry int) bool {
	e := &m.log[entry]
	if e.counts = !m.closed(); e.send.kind == SendReport || !e.counts {
		return e.counts
	}
	if e.r == nil || m.forgotten(e.r, entry) {
		return false
	}
	for i := range m.log[:entry] {
		if other := &m.log[i]; other.deed == deedFailure && other.r == e.r && other.send == e.send {
			return false
		}
	}
	return true
}

// entered is the latest round that timers before an entry fell in.
func (m *model) entered(r *modelRequest, entry int) (k int) {
	for i := r.since + 1; i < entry; i++ {
		if m.log[i].deed == deedTimer {
			k = max(k, m.plan.interval(m.log[i].at-r.t0))
		}
	}
	return k
}

// forgotten tells whether a request's identity was given up before an entry.
func (m *model) forgotten(r *modelRequest, entry int) bool {
	if r.end.entry < 0 {
		return false
	}
	for i := r.end.entry; i < entry; i++ {
		e := &m.log[i]
		if e.deed == deedClose || e.at >= m.horizon(r) && (e.deed == deedTimer || i == r.end.entry) {
			return true
		}
	}
	return false
}

// deadline is what a request waited for before an entry, false for nothing.
func (m *model) deadline(r *modelRequest, entry int) (time.Duration, bool) {
	held := r.before(entry)
	switch ended := r.end.entry >= 0 && r.end.entry < entry; {
	case r.empty() || m.forgotten(r, entry):
		return 0, false
	case ended:
		if due, ok := m.owed(r, entry); ok {
			return due, true
		}
		return m.horizon(r), true
	case len(held) > 0:
		return m.instant(r, held[0]), true
	}
	return r.t0 + m.plan.starts[m.entered(r, entry)+1], true
}

// verdict judges the datagram of an entry.
func (m *model) verdict(i int) DatagramVerdict {
	e := &m.log[i]
	r := e.r
	switch {
	case e.datagram.flaw == flawNoise:
		return DatagramMalformed
	case !e.names(r) || r == nil || m.forgotten(r, i):
		if e.datagram.flaw == flawMode {
			return DatagramMode
		}
		return DatagramUnknown
	case e.at >= m.horizon(r):
		return DatagramExpired
	case e.datagram.flaw != flawNone:
		return flawVerdicts[e.datagram.flaw]
	case r.age(e) < 0:
		return DatagramStranger
	case !slices.Contains(r.answers, i):
		return DatagramDuplicate
	case r.end.entry >= 0 && (r.end.entry < i || r.end.early):
		return DatagramLate
	}
	return DatagramCounted
}
