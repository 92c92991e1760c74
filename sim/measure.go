package sim

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// MeasureOptions are how a run is measured. The zero value is the default.
type MeasureOptions struct {
	// Bin is the length of a bin of the timeline; 0 is the 200th part of the scenario's length, at
	// least 100 ms. There may be 100,000 bins.
	Bin time.Duration
	// Keep is for how long after its horizon a request is followed; 0 is 5 s. What arrives later is
	// counted, but no longer known to be a repeat.
	Keep time.Duration
}

const (
	defaultKeep = 5 * time.Second
	maxBins     = 100_000
)

// A Measurer is a [Recorder] that measures a run. Its memory does not grow with the number of
// requests: it holds those of the last horizon and [MeasureOptions].Keep, and for each bucket what
// was granted in its last window. Make one with NewMeasurer for every run. It is not safe for
// concurrent use.
type Measurer struct {
	scenario *Scenario
	keep     time.Duration
	horizon  time.Duration // of a request; the same for all
	ttl      time.Duration // the horizon in milliseconds, rounded up
	now      time.Duration
	err      error

	cred    *wire.Credential
	scratch wire.Scratch
	clients []int // the group of each client
	servers []ident.ServerID
	oldest  []ident.ServerID // of each client's membership

	requests following
	arrival  oracle
	submit   oracle
	reports  reportQueue
	buckets  buckets
	grants   grantQueue
	faults   faultSpans
	ports    steering
	services []serviceLoad

	out Measures
}

// NewMeasurer returns a measurer of one run of a scenario, which it reads and does not change.
func NewMeasurer(s *Scenario, o MeasureOptions) (*Measurer, error) {
	bin, keep := o.Bin, o.Keep
	if bin == 0 {
		bin = max(100*time.Millisecond, s.Length/200)
	}
	if keep == 0 {
		keep = defaultKeep
	}
	switch {
	case s.Length <= 0 || s.Warmup < 0 || s.Warmup >= s.Length:
		return nil, fmt.Errorf("sim: a scenario of length %v and warmup %v leaves nothing to measure", s.Length, s.Warmup)
	case bin < 0 || s.Length/bin >= maxBins:
		return nil, fmt.Errorf("sim: MeasureOptions.Bin is %v; use at least %v for a length of %v", o.Bin, s.Length/maxBins+1, s.Length)
	case keep < 0:
		return nil, fmt.Errorf("sim: MeasureOptions.Keep is %v; use a positive duration, or 0 for %v", o.Keep, defaultKeep)
	}
	timeline, err := s.policy().Compile()
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	m := &Measurer{scenario: s, keep: keep, horizon: timeline.Horizon()}
	m.ttl = time.Duration(timeline.HorizonMs()) * time.Millisecond
	for g := range s.Clients {
		for range s.Clients[g].count() {
			m.clients = append(m.clients, g)
		}
	}
	m.servers = make([]ident.ServerID, len(s.Servers))
	m.oldest = make([]ident.ServerID, len(m.clients))
	m.ports = make(steering, len(m.clients))
	m.services = newServices(s)
	if m.arrival, err = newOracle(s); err != nil {
		return nil, err
	}
	if m.submit, err = newOracle(s); err != nil {
		return nil, err
	}
	m.out.Timeline = Timeline{Bin: bin, Bins: make([]Bin, (s.Length+bin-1)/bin)}
	m.out.MeasuredFor = s.Length - s.Warmup
	return m, nil
}

// Record takes in what happened.
func (m *Measurer) Record(r *Record) {
	if m.err != nil {
		return
	}
	m.now = max(m.now, r.At)
	m.settle(m.now)
	if err := m.take(r); err != nil {
		m.err = fmt.Errorf("sim: measuring request %d at %v: %w", r.Request, r.At, err)
	}
}

// Finish ends the run and returns its measures. The measurer is used up. The error is of a record
// that cannot be, and says which.
func (m *Measurer) Finish() (*Measures, error) {
	if m.err != nil {
		return nil, m.err
	}
	const end = 1 << 62
	m.settle(end)
	if m.err != nil {
		return nil, m.err
	}
	m.buckets.finish(&m.out.Net)
	m.out.Faults = m.faults.effects(&m.out.Timeline, m.scenario.Length)
	m.out.Steering.Pending = m.ports.pending()
	m.out.Services = m.finishServices()
	return &m.out, nil
}

// settle closes what is final at a time: reports that the oldest server has not seen, grants that
// nothing earlier can follow, requests of which nothing more is expected.
func (m *Measurer) settle(now time.Duration) {
	for m.err == nil {
		p := m.reports.due(now - m.horizon)
		if p == nil {
			break
		}
		m.fail(m.placeReport(p, p.sent+m.horizon))
		m.reports.drop()
	}
	for {
		g, ok := m.grants.pop(now - m.horizon)
		if !ok {
			break
		}
		m.buckets.grant(&g, &m.out.Over)
	}
	for {
		q := m.requests.due(now - m.horizon - m.keep)
		if q == nil {
			break
		}
		m.conclude(q)
		m.requests.drop()
	}
}

func (m *Measurer) fail(err error) {
	if m.err == nil && err != nil {
		m.err = fmt.Errorf("sim: measuring at %v: %w", m.now, err)
	}
}

// measured tells whether what happens at a time is counted.
func (m *Measurer) measured(at time.Duration) bool { return at >= m.scenario.Warmup }

// bin returns the bin of a time.
func (m *Measurer) bin(at time.Duration) *Bin {
	return &m.out.Timeline.Bins[m.out.Timeline.index(at)]
}

func (m *Measurer) take(r *Record) error {
	switch r.Kind {
	case RecordRun:
		cred, err := wire.NewCredential(r.Key)
		m.cred = cred
		return err
	case RecordSubmit:
		return m.submitted(r)
	case RecordSend:
		return m.sent(r)
	case RecordLost:
		m.lost(r)
	case RecordArrive:
		m.arrived(r)
	case RecordServe:
		return m.served(r)
	case RecordResponse:
		m.answered(r)
	case RecordDecide:
		return m.decided(r)
	case RecordMembership:
		m.oldest[r.Client] = oldestOf(r.Servers)
	case RecordWork:
		m.workBegins(r)
	case RecordWorked:
		m.workEnds(r)
	case RecordServer:
		if r.Up {
			m.servers[r.Server] = r.ID
		} else if r.Engine != nil {
			m.out.Dedup.Degraded += r.Engine.Degraded
		}
	case RecordFault:
		m.faults.record(r.Fault, r.At, r.Up, m.scenario.Faults[r.Fault].For == 0)
	case RecordSteer, RecordLookup, RecordDiscoveryFailed, RecordReport:
		// The sends and answers that they lead to tell all.
	}
	return nil
}

func oldestOf(servers []core.Server) ident.ServerID {
	if len(servers) == 0 {
		return 0
	}
	return servers[0].ID
}

func (m *Measurer) submitted(r *Record) error {
	if len(m.requests.all)-m.requests.head >= maxFollowed {
		return fmt.Errorf("more than %d requests were submitted within %v; ask less often", maxFollowed, m.horizon+m.keep)
	}
	q := m.requests.add(r.Request)
	q.client, q.choice, q.submit = r.Client, r.Choice, r.At
	q.measured = m.measured(r.At)
	q.oldest = oldestOf(r.Servers)
	q.state = undecided
	if r.Err != nil {
		q.state = refused
	}
	if len(r.Servers) > 0 {
		m.oldest[r.Client] = q.oldest
	}
	if q.measured {
		m.out.Requests.Submitted++
		m.bin(r.At).Submitted++
	}
	return nil
}

func (m *Measurer) sent(r *Record) error {
	m.ports.sent(r, &m.out.Steering)
	if r.Send == core.SendReport {
		if m.measured(r.At) {
			m.out.Datagrams.Report++
			if !m.faults.underWay() {
				m.out.Health.Report++
			}
		}
		return m.reportSent(r)
	}
	q := m.requests.get(r.Request)
	if q == nil {
		m.stray(r)
		return nil
	}
	switch r.Send {
	case core.SendFirst:
		q.sends.First++
	case core.SendReplay:
		q.sends.Replay++
	case core.SendCompletion:
		q.sends.Completion++
	}
	if q.judged {
		return nil
	}
	return m.submitOracle(q, r.Payload)
}

// stray counts a datagram of no request that is followed.
func (m *Measurer) stray(r *Record) {
	switch {
	case !m.measured(r.At):
	case r.Request != 0:
		m.out.Unfollowed++
	case r.Kind == RecordSend, r.Kind == RecordServe && answers(r.Verdict):
		m.out.Datagrams.Probe++
	}
}

func (m *Measurer) lost(r *Record) {
	if m.measured(r.At) {
		if r.Answer {
			m.out.Losses.Answers[r.Cause]++
		} else {
			m.out.Losses.Requests[r.Cause]++
		}
	}
	if q := m.requests.get(r.Request); q != nil {
		q.lost = true
	}
}

func (m *Measurer) arrived(r *Record) {
	if m.measured(r.At) {
		m.out.Queue.Add(int64(r.Queue))
	}
	if q := m.requests.get(r.Request); q != nil {
		q.at(m.servers[r.Server], r.Server).arrive(r.At)
	}
}

// answers tells whether a server answers after a verdict.
func answers(v limiter.Verdict) bool {
	return v >= limiter.Granted && v <= limiter.RepeatRejected
}

func (m *Measurer) served(r *Record) error {
	if m.measured(r.At) {
		if r.Late {
			m.out.Dedup.Late++
		} else {
			m.out.Dedup.Verdicts[r.Verdict]++
		}
		if r.Verdict == limiter.RepeatGranted || r.Verdict == limiter.RepeatRejected {
			m.out.Dedup.FromMemory++
		}
	}
	if r.Send == core.SendReport {
		return m.reportServed(r)
	}
	q := m.requests.get(r.Request)
	if q == nil {
		m.stray(r)
		return nil
	}
	if answers(r.Verdict) {
		q.sends.Answer++
	}
	id := m.servers[r.Server]
	if id == q.oldest {
		if err := m.arrivalOracle(q, r.At); err != nil {
			return err
		}
	}
	if r.Verdict == limiter.Granted || r.Verdict == limiter.Rejected {
		m.executed(q, q.at(id, r.Server), r.At, r.Verdict == limiter.Granted)
	}
	return nil
}

func (m *Measurer) answered(r *Record) {
	if m.measured(r.At) {
		m.out.Answers.Verdicts[r.Received]++
	}
	if !r.Received.Valid() {
		return
	}
	m.ports.answered(r, m.measured(r.At), &m.out.Steering)
	q := m.requests.get(r.Request)
	if q == nil {
		return
	}
	both := q.saidYes && q.saidNo
	q.saidYes = q.saidYes || r.Granted
	q.saidNo = q.saidNo || !r.Granted
	if q.measured && !both && q.saidYes && q.saidNo {
		m.out.Answers.Contradictory++
	}
}
