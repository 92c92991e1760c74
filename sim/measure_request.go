package sim

import (
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
)

// followState is how far a request is.
type followState uint8

const (
	unknown   followState = iota // a number that no request was submitted under
	undecided                    // until it has ended; for good if the run leaves it so
	refused
	granted
	rejected
	timedOut
	sendFailed
)

// followed is what is known of a request while datagrams of it may be under way.
type followed struct {
	state    followState
	measured bool // submitted after the warmup
	judged   bool // the submit-order oracle has seen it
	arrived  bool // the arrival-order oracle has, too
	lost     bool // a datagram or an answer was
	compared bool // two servers executed it
	disagree bool // two servers did
	saidYes  bool // a valid answer granted it
	saidNo   bool // a valid answer rejected it
	onSubmit bool // the oracles' decisions
	onArrive bool

	client, choice int
	submit         time.Duration
	oldest         ident.ServerID // of those that it was sent to
	pdu            []byte         // what it asks, until both oracles have seen it
	takes          []taken
	visits         []visit
	sends          Datagrams
}

// taken is what a request takes of a bucket, all its blocks together.
type taken struct {
	bucket int // an index into buckets
	tokens uint32
}

// visit is what a request was to one server, that is to one server ID.
type visit struct {
	id          ident.ServerID
	server      int
	arrivals    int
	first, last time.Duration // arrivals
	executions  int
	executed    time.Duration // when it was first
	granted     bool          // the first time
	again       bool          // another process in its place had executed it before
	consumed    bool          // any time
}

// at returns the visit to a server, a new one if there is none.
func (q *followed) at(id ident.ServerID, server int) *visit {
	for i := range q.visits {
		if q.visits[i].id == id && q.visits[i].server == server {
			return &q.visits[i]
		}
	}
	q.visits = append(q.visits, visit{id: id, server: server})
	return &q.visits[len(q.visits)-1]
}

func (v *visit) arrive(at time.Duration) {
	if v.arrivals == 0 {
		v.first = at
	}
	v.arrivals++
	v.last = at
}

// tokens returns how many tokens the request takes, of all buckets.
func (q *followed) tokens() uint64 {
	sum := uint64(0)
	for _, t := range q.takes {
		sum += uint64(t.tokens)
	}
	return sum
}

// following holds the requests that are followed, which were submitted in the order of their
// numbers.
type following struct {
	base uint64 // the number of the first
	all  []*followed
	head int // of all; what is before is free
	free []*followed
}

// add begins to follow a request. Its number is above all earlier ones.
func (f *following) add(number uint64) *followed {
	if f.head == len(f.all) {
		f.base, f.head, f.all = number, 0, f.all[:0]
	}
	for f.base+uint64(len(f.all)-f.head) <= number {
		f.all = append(f.all, f.blank())
	}
	return f.get(number)
}

// get returns a request, or nil if it is not followed.
func (f *following) get(number uint64) *followed {
	if number < f.base || number-f.base >= uint64(len(f.all)-f.head) {
		return nil
	}
	return f.all[f.head+int(number-f.base)]
}

// due returns the first request if it was submitted at or before a time, else nil.
func (f *following) due(submit time.Duration) *followed {
	if f.head == len(f.all) || f.all[f.head].submit > submit {
		return nil
	}
	return f.all[f.head]
}

// drop ceases to follow the first request.
func (f *following) drop() {
	f.free = append(f.free, f.all[f.head])
	f.all[f.head] = nil
	f.head++
	f.base++
	if f.head > 1024 && 2*f.head > len(f.all) {
		n := copy(f.all, f.all[f.head:])
		clear(f.all[n:])
		f.all, f.head = f.all[:n], 0
	}
}

func (f *following) blank() *followed {
	n := len(f.free)
	if n == 0 {
		return &followed{}
	}
	q := f.free[n-1]
	f.free = f.free[:n-1]
	*q = followed{pdu: q.pdu[:0], takes: q.takes[:0], visits: q.visits[:0]}
	return q
}

// executed notes that a server executed a request, and whether servers agree about it: about each
// request the first execution of each server counts.
func (m *Measurer) executed(q *followed, v *visit, at time.Duration, yes bool) {
	again, others, differ := v.executions > 0, false, false
	for i := range q.visits {
		o := &q.visits[i]
		switch {
		case o == v || o.executions == 0:
		case o.server == v.server:
			again = true
		case o.again: // of each place the first execution counts
		default:
			others = true
			differ = differ || o.granted != yes
		}
	}
	if v.executions == 0 {
		v.executed, v.granted, v.again = at, yes, again
	}
	v.executions++
	v.consumed = v.consumed || yes
	if again {
		if q.measured {
			m.out.Executed.Again++
			if yes {
				m.out.Executed.AgainTokens += q.tokens()
			}
		}
		return
	}
	if !others || !q.measured {
		return
	}
	if !q.compared {
		q.compared = true
		m.out.Disagree.Compared++
		m.bin(q.submit).Compared++
	}
	if differ && !q.disagree {
		q.disagree = true
		m.out.Disagree.Disagreed++
		m.bin(q.submit).Disagreed++
		m.faults.disagreed(q.submit)
	}
}

// decided takes in the end of a request.
func (m *Measurer) decided(r *Record) error {
	q := m.requests.get(r.Request)
	if q == nil {
		m.stray(r)
		return nil
	}
	c := r.Completion
	switch c.Outcome {
	case core.Granted:
		q.state = granted
	case core.Rejected:
		q.state = rejected
	case core.TimedOut:
		q.state = timedOut
	case core.SendFailed:
		q.state = sendFailed
	}
	if err := m.arrivalOracle(q, r.At); err != nil {
		return err
	}
	if q.state == granted {
		m.clientGrants(q, r)
	}
	if q.measured {
		m.latency(q, c)
	}
	if q.state == rejected {
		m.workRejected(q)
	}
	return nil
}

func (m *Measurer) latency(q *followed, c *core.Completion) {
	l, n := &m.out.Latency, &m.out.Requests
	switch q.state {
	case granted:
		n.Granted++
		l.Granted.Add(int64(c.Elapsed))
	case rejected:
		n.Rejected++
		l.Rejected.Add(int64(c.Elapsed))
	case timedOut:
		n.TimedOut++
		l.TimedOut.Add(int64(c.Elapsed))
		return
	default:
		n.SendFailed++
		return
	}
	m.bin(q.submit).Decided++
	l.Decided.Add(int64(c.Elapsed))
	switch {
	case c.Server == 0: // a request for nothing, which nobody decided
	case c.Oldest:
		l.Oldest.Add(int64(c.Elapsed))
	default:
		l.Fallback.Add(int64(c.Elapsed))
	}
}

// clientGrants enters what a client was granted, at the instant when the deciding server executed
// the request.
func (m *Measurer) clientGrants(q *followed, r *Record) {
	place := r.At
	for i := range q.visits {
		if v := &q.visits[i]; v.id == r.Completion.Server && v.executions > 0 {
			place = v.executed
		}
	}
	for _, t := range q.takes {
		m.grants.push(grant{place: place, request: r.Request, bucket: t.bucket, tokens: t.tokens, measured: q.measured})
		if q.measured {
			m.buckets.net(t.bucket, q.submit, m.now-m.horizon, int64(t.tokens), &m.out.Net)
		}
	}
}

// conclude counts what is known of a request when nothing more is expected.
func (m *Measurer) conclude(q *followed) {
	if q.state == unknown || !q.measured {
		return
	}
	for i := range q.visits {
		if v := &q.visits[i]; v.arrivals > 1 {
			m.out.Dedup.Window.Add(int64(v.last-v.first) * 1_000_000 / int64(m.ttl))
		}
	}
	decided := q.state == granted || q.state == rejected
	healthy := !q.lost && m.faults.clear(q.submit, q.submit+m.horizon)
	m.out.Datagrams.add(&q.sends, decided)
	if healthy {
		m.out.Health.add(&q.sends, decided)
	}
	m.compare(q, decided, healthy)
	consumed := false
	for i := range q.visits {
		consumed = consumed || q.visits[i].consumed
	}
	e := &m.out.Executed
	switch q.state {
	case refused:
		m.out.Requests.Refused++
	case undecided:
		m.out.Requests.Unended++
	}
	switch {
	case !consumed || q.state == granted:
	case q.state == rejected:
		e.DeniedGrants++
		e.DeniedTokens += q.tokens()
	default:
		e.ErrorGrants++
		e.ErrorTokens += q.tokens()
	}
}

// add adds what was sent for a request.
func (d *Datagrams) add(o *Datagrams, decided bool) {
	if decided {
		d.Decided++
	}
	d.First += o.First
	d.Replay += o.Replay
	d.Completion += o.Completion
	d.Answer += o.Answer
}

// compare counts a request by what the oracles said of it.
func (m *Measurer) compare(q *followed, decided, healthy bool) {
	if !q.judged {
		return
	}
	yes := q.state == granted
	m.out.Submit.count(q, q.onSubmit, decided, healthy)
	if q.arrived {
		m.out.Arrival.count(q, q.onArrive, decided, healthy)
		if decided && q.onArrive != yes {
			m.bin(q.submit).False++
		}
	}
}

func (c *OracleCounts) count(q *followed, oracle, decided, healthy bool) {
	yes := q.state == granted
	if !decided {
		if oracle {
			c.UndecidedGrant++
		} else {
			c.UndecidedDenial++
		}
		return
	}
	wrong := uint64(0)
	if oracle != yes {
		wrong = 1
	}
	c.Judged++
	if yes {
		c.FalseGrant += wrong
	} else {
		c.FalseDenial += wrong
	}
	if healthy {
		c.HealthJudged++
		c.HealthFalse += wrong
	}
	if q.disagree {
		c.SplitJudged++
		c.SplitFalse += wrong
	}
}
