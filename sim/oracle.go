package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// An oracle is one perfect server: the real engine, with room for everything, which sees every
// logical request and every report once.
type oracle struct {
	engine *limiter.Engine
	age    time.Duration // of the oldest server at time 0, whose clock it shares
	seen   uint64        // datagrams; each has an identity of its own

	request wire.RequestView
	report  wire.ReportView
	answer  wire.Answer
}

// Room that no scenario fills. Tables grow as they are used.
const (
	oracleBuckets    = 1 << 26
	oracleTrackers   = 1 << 20
	oracleIdentities = 1 << 26
	oracleWall       = 1_000_000 // ms; the oracle's wall clock at time 0
	oracleTTL        = 1         // ms; nobody repeats a request to an oracle
)

// newOracle returns an oracle that decides like the oldest server of a scenario.
func newOracle(s *Scenario) (o oracle, err error) {
	c := limiter.Config{
		RateBuckets: oracleBuckets, LatencyServices: oracleTrackers, LatencyBufferSize: s.quotas().LatencyBufferSize,
		DedupTTLMax: oracleTTL, WindowMax: math.MaxUint32, Identities: oracleIdentities, Skew: 1,
	}
	if len(s.Servers) > 0 {
		oldest := &s.Servers[0]
		for i := range s.Servers {
			if s.Servers[i].Age > oldest.Age {
				oldest = &s.Servers[i]
			}
		}
		c.Estimator, c.Pacing, c.Shadow = oldest.Estimator, oldest.Pacing, oldest.Shadow
		c.Probe = uint32(oldest.Probe / time.Millisecond)
		o.age = oldest.Age
	}
	if o.engine, err = limiter.New(c); err != nil {
		err = fmt.Errorf("sim: an oracle: %w", err)
	}
	return o, err
}

// next returns the time and the header of the next datagram.
func (o *oracle) next(at time.Duration) (limiter.Time, wire.Header) {
	o.seen++
	now := limiter.Time{Mono: int64(at + o.age), Wall: oracleWall + uint64(at/time.Millisecond)}
	h := wire.Header{Timestamp: now.Wall}
	binary.LittleEndian.PutUint64(h.UniqueID[:], o.seen)
	return now, h
}

// decide returns whether the oracle grants a request, as its client would read the answer.
func (o *oracle) decide(at time.Duration, pdu []byte) (bool, error) {
	if err := wire.ParseRequest(pdu, &o.request); err != nil {
		return false, err
	}
	o.request.DedupTTL = oracleTTL
	now, h := o.next(at)
	if v := o.engine.Decide(now, &h, &o.request, &o.answer); v.Dropped() {
		return false, fmt.Errorf("the oracle drops it: %v", v)
	}
	for i, latency := range o.answer.Latencies {
		if latency >= o.request.Guard(i).Threshold {
			return false, nil
		}
	}
	for _, deficit := range o.answer.Deficits {
		if deficit > 0 {
			return false, nil
		}
	}
	return true, nil
}

// observe takes in a report.
func (o *oracle) observe(at time.Duration, pdu []byte) error {
	if err := wire.ParseReport(pdu, &o.report); err != nil {
		return err
	}
	now, h := o.next(at)
	if v := o.engine.Observe(now, &h, &o.report); v.Dropped() {
		return fmt.Errorf("the oracle drops a report: %v", v)
	}
	return nil
}

var errNoKey = errors.New("a datagram came before RecordRun, whose key opens it")

// open returns the PDU of a datagram and its identity. The PDU is valid until the next call.
func (m *Measurer) open(datagram []byte) ([]byte, wire.UniqueID, error) {
	if m.cred == nil {
		return nil, wire.UniqueID{}, errNoKey
	}
	var env wire.Envelope
	if err := wire.ParseEnvelope(datagram, &env); err != nil {
		return nil, wire.UniqueID{}, err
	}
	pdu, err := m.cred.Open(&env, &m.scratch)
	return pdu, env.Header.UniqueID, err
}

// submitOracle has the submit-order oracle decide a request, of which a datagram was sent for the
// first time: that is when it was submitted. It keeps what the request asks.
func (m *Measurer) submitOracle(q *followed, datagram []byte) error {
	pdu, _, err := m.open(datagram)
	if err != nil {
		return err
	}
	q.pdu = append(q.pdu[:0], pdu...)
	if q.onSubmit, err = m.submit.decide(q.submit, q.pdu); err != nil {
		return err
	}
	q.judged = true
	v := &m.submit.request
	for i := range v.Resources() {
		if r := v.Resource(i); r.Tokens > 0 {
			q.take(m.buckets.index(&r), uint32(r.Tokens))
		}
	}
	if !q.measured {
		return nil
	}
	for _, t := range q.takes {
		tokens := int64(0)
		if q.onSubmit {
			tokens = int64(t.tokens)
		}
		m.buckets.net(t.bucket, q.submit, m.now-m.horizon, -tokens, &m.out.Net)
	}
	return nil
}

func (q *followed) take(bucket int, tokens uint32) {
	for i := range q.takes {
		if q.takes[i].bucket == bucket {
			q.takes[i].tokens += tokens
			return
		}
	}
	q.takes = append(q.takes, taken{bucket, tokens})
}

// arrivalOracle has the arrival-order oracle decide a request at its place, which is now: the oldest
// server handles a datagram of it, or its client ends it without that.
func (m *Measurer) arrivalOracle(q *followed, at time.Duration) (err error) {
	if !q.judged || q.arrived {
		return nil
	}
	q.arrived = true
	q.onArrive, err = m.arrival.decide(at, q.pdu)
	return err
}
