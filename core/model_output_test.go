package core

import (
	"slices"
	"time"

	"github.com/weirhq/weir/wire"
)

// What the model says must come out of the latest entry of its log.

// due lists the requests that a timer has something to do for, in the order of
// their deadlines and then of submission.
func (m *model) due(entry int) (list []*modelRequest) {
	deadline := func(r *modelRequest) time.Duration {
		d, _ := m.deadline(r, entry)
		return d
	}
	for _, r := range m.requests {
		if d, ok := m.deadline(r, entry); ok && d <= m.log[entry].at {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b *modelRequest) int { return int(deadline(a) - deadline(b)) })
	return list
}

// sends lists what the latest entry wants sent.
func (m *model) sends() (list []modelSend) {
	i := len(m.log) - 1
	e := &m.log[i]
	switch {
	case m.closed():
	case e.deed == deedSubmit && e.r != nil && !e.r.empty():
		for endpoint := range e.r.endpoints() {
			list = append(list, modelSend{kind: SendFirst, r: e.r, endpoint: endpoint})
		}
	case e.deed == deedReport:
		all := (&modelRequest{servers: m.members()}).endpoints()
		for part := range e.sizes {
			for endpoint := range all {
				list = append(list, modelSend{kind: SendReport, report: i, part: part, endpoint: endpoint})
			}
		}
	case e.deed == deedTimer:
		for _, r := range m.due(i) {
			list = append(list, m.again(r, i)...)
		}
	case e.deed == deedDatagram && e.r != nil:
		list = m.again(e.r, i)
	}
	return list
}

// again lists what an entry sends once more of a request: a replay where a round
// ended without an answer, or the completion delivery of its decision.
func (m *model) again(r *modelRequest, entry int) (list []modelSend) {
	e := &m.log[entry]
	now := m.plan.interval(e.at - r.t0)
	if e.at >= m.horizon(r) {
		return nil
	}
	answered := r.before(entry)
	kind := SendReplay
	switch {
	case r.end.entry >= 0 && r.end.entry < entry:
		if due, ok := m.owed(r, entry); !ok || e.deed != deedTimer || e.at < due {
			return nil
		}
		kind = SendCompletion
	case r.end.entry == entry:
		if _, later := m.delivery(r); later || !m.plan.policy.CompletionDelivery {
			return nil
		}
		kind = SendCompletion
		if !r.end.early {
			answered = r.before(entry + 1)
		}
	case r.end.entry >= 0 || len(answered) > 0 || e.deed != deedTimer:
		return nil
	case now > m.plan.policy.Replays || now <= m.entered(r, entry):
		return nil
	}
	for endpoint, server := range r.endpoints() {
		if !slices.ContainsFunc(answered, func(a int) bool { return r.age(&m.log[a]) == server }) {
			list = append(list, modelSend{kind: kind, r: r, round: now, endpoint: endpoint})
		}
	}
	return list
}

// sendable tells whether something that was wanted may be sent by the poll that
// is the latest entry.
func (m *model) sendable(s *modelSend) bool {
	entry := len(m.log) - 1
	r := s.r
	switch ended := r != nil && r.end.entry >= 0; {
	case m.closed():
		return false
	case r == nil:
		return true
	case m.log[entry].at >= m.horizon(r), ended && r.end.outcome == 0:
		return false
	case s.kind == SendReplay:
		return !ended && len(r.before(entry)) == 0
	}
	return true
}

// completed lists the requests that the latest entry completed.
func (m *model) completed() (list []*modelRequest) {
	entry := len(m.log) - 1
	from := m.requests
	if m.log[entry].deed == deedTimer {
		from = m.due(entry)
	}
	for _, r := range from {
		if r.end.entry == entry && r.end.outcome != 0 {
			list = append(list, r)
		}
	}
	return list
}

// completion is what a request that the latest entry ended is told.
func (m *model) completion(r *modelRequest) Completion {
	e := &m.log[r.end.entry]
	done := Completion{Request: r.id, Outcome: r.end.outcome, KeepPort: true, Elapsed: e.at - r.t0}
	if r.empty() {
		return done
	}
	done.Seen = m.seen(r)
	final := m.plan.policy.Replays + 1
	switch done.Outcome {
	case Granted, Rejected:
		by := &m.log[r.end.by]
		done.Server = by.datagram.server
		done.Oldest = r.age(by) == 0
		done.KeepPort = !by.datagram.changePort
		done.Round = m.plan.interval(by.at - r.t0)
		_, done.Guards, done.Resources = results(&r.ask, by.datagram)
	case TimedOut:
		done.Round = final
	case SendFailed:
		done.Err = e.err
	}
	done.Final = done.Round == final
	return done
}

// seen counts what came in for a request before it ended.
func (m *model) seen(r *modelRequest) Seen {
	seen := Seen{Servers: len(r.servers), Endpoints: len(r.endpoints())}
	for i := r.since + 1; i <= r.end.entry; i++ {
		e := &m.log[i]
		switch {
		case e.deed == deedFailure && e.r == r && e.counts:
			seen.SendFailures++
		case e.deed != deedDatagram || i == r.end.entry && r.end.early:
		case e.r == r || e.verdict == DatagramMalformed || e.verdict == DatagramUnknown:
			seen.Datagrams[e.verdict]++
		}
	}
	return seen
}

// steers tells whether the answer of an entry makes a socket change: one advice
// for a socket, none for one that was replaced, none for a second after one that
// has just become.
func (m *model) steers(entry int) bool {
	e := &m.log[entry]
	if !e.verdict.Valid() || !e.datagram.changePort {
		return false
	}
	told := false
	deaf := e.at
	for i := range m.log[:entry] {
		switch other := &m.log[i]; {
		case other.deed == deedDatagram && other.steered && other.datagram.socket == e.datagram.socket:
			told = true
		case other.deed != deedRebound:
		case other.replacement == e.datagram.socket:
			told, deaf = false, other.at+time.Second
		case other.old == e.datagram.socket:
			return false
		}
	}
	return !told && e.at >= deaf
}

// results is what an answer says, in the order of the question. Blocks of one ID
// pair in order, guards of equal thresholds first.
func results(ask *Request, answer *modelDatagram) (granted bool, guards []GuardResult, resources []ResourceResult) {
	granted = true
	for i, of := range pairs(len(ask.Guards), len(answer.guards),
		func(i, j int) bool {
			return ask.Guards[i].Tracker == ask.Guards[j].Tracker && ask.Guards[i].Threshold == ask.Guards[j].Threshold
		},
		func(i, j int) bool {
			return ask.Guards[i].Tracker == answer.guards[j].guard.Tracker && ask.Guards[i].Threshold == answer.guards[j].guard.Threshold
		},
		func(i, j int) bool { return ask.Guards[i].Tracker == answer.guards[j].guard.Tracker },
	) {
		said := answer.guards[of]
		passed := said.number < min(said.guard.Threshold, ask.Guards[i].Threshold)
		granted = granted && passed
		guards = append(guards, GuardResult{Latency: said.number, Passed: passed})
	}
	bucket := func(r *wire.Resource) string { return string(r.Bucket[:]) }
	same := func(i, j int) bool { return bucket(&ask.Resources[i]) == bucket(&answer.resources[j].resource) }
	for _, of := range pairs(len(ask.Resources), len(answer.resources),
		func(i, j int) bool { return bucket(&ask.Resources[i]) == bucket(&ask.Resources[j]) }, same, same,
	) {
		said := answer.resources[of]
		granted = granted && said.number == 0
		resources = append(resources, ResourceResult{ActualRate: said.rate, Deficit: uint16(said.number)})
	}
	return granted, guards, resources
}

// pairs finds for each block of the question the one of the answer: of those that
// are equal the n-th takes the n-th, and what is left over takes what is left
// over and of its kind, in order.
func pairs(asked, answered int, alike, equal, kind func(i, j int) bool) []int {
	of := make([]int, asked)
	for i := range asked {
		of[i] = -1
		rank := 0
		for j := range i {
			if alike(i, j) {
				rank++
			}
		}
		for j := range answered {
			if equal(i, j) {
				if rank == 0 {
					of[i] = j
					break
				}
				rank--
			}
		}
	}
	for i := range asked {
		for j := 0; of[i] < 0 && j < answered; j++ {
			if kind(i, j) && !slices.Contains(of, j) {
				of[i] = j
			}
		}
	}
	return of
}
