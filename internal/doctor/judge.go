package doctor

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// arrival is a datagram that came in.
type arrival struct {
	b    []byte
	from netip.AddrPort
	at   time.Time
}

// take judges what came in and writes down what it shows.
func (p *prober) take(a arrival) {
	seen := &p.endpoint.Seen
	var e wire.Envelope
	if wire.ParseEnvelope(a.b, &e) != nil {
		seen.Malformed++
		return
	}
	q := p.asked[e.Header.UniqueID]
	if q == nil {
		seen.Unrelated++
		return
	}
	pdu, err := p.credential.Open(&e, &p.scratch)
	switch {
	case errors.Is(err, wire.ErrMode):
		seen.OtherMode++
		return
	case errors.Is(err, wire.ErrAuth):
		seen.Forged++
		return
	case err != nil:
		seen.Malformed++
		return
	}
	switch kind, err := wire.PDUKind(pdu); {
	case err != nil:
		seen.Malformed++
	case kind != wire.KindResponse:
		seen.Reflected++
	default:
		p.takeResponse(q, a, &e.Header, pdu)
	}
}

// takeResponse judges an authentic response to a question.
func (p *prober) takeResponse(q *question, a arrival, h *wire.Header, pdu []byte) {
	seen, ep := &p.endpoint.Seen, p.endpoint
	p.hear(q, a, h)
	if id := ident.ServerID(h.KeyID); id != p.server {
		seen.Strangers++
		ep.OtherID = id
		return
	}
	var v wire.ResponseView
	switch {
	case wire.ParseResponse(pdu, q.layout, &v) == nil && q.asks(&v):
	case wire.ParseResponse(pdu, otherThan(q.layout), &v) == nil && v.Guards() > 0:
		seen.OtherLayout++
		return
	default:
		seen.Mismatched++
		return
	}
	if q.answered {
		return // a repeat, over another path or by a faulty server
	}
	q.answered, q.rtt = true, a.at.Sub(q.sent)
	seen.Answers++
	if a.from != ep.Addr {
		ep.From = a.from
	}
}

// hear takes the clock of whoever answered. Of several answers that of the
// shortest round trip tells it best.
func (p *prober) hear(q *question, a arrival, h *wire.Header) {
	rtt := a.at.Sub(q.sent)
	if p.endpoint.Heard && rtt >= p.bestRTT {
		return
	}
	p.endpoint.Heard, p.bestRTT = true, rtt
	middle := a.at.Add(-rtt / 2)
	p.endpoint.Offset = Millis(time.UnixMilli(int64(min(h.Timestamp, 1<<53))).Sub(middle.Round(0)))
}

// state tells what the exchanges with the address came to.
func (p *prober) state() State {
	ep, seen := p.endpoint, &p.endpoint.Seen
	switch {
	case p.answered(plain) > 0:
		return Answers
	case seen.Answers > 0 && !p.proven:
		return Answers // that plain questions were not among those answered was loss
	case p.answered(brief) > 0:
		return TTLCap
	case p.answered(shifted) > 0:
		return Clock
	case seen.Strangers > 0:
		return Stranger
	case seen.OtherLayout > 0:
		return OtherForm
	case seen.OtherMode > 0:
		return OtherMode
	case seen.Forged > 0:
		return OtherKey
	case seen.Reflected > 0:
		return Reflects
	case *seen != Seen{}:
		return Garbage
	case p.knocked, p.unsent == len(p.questions):
		return ep.State // what ICMP or this machine said
	}
	return NoAnswer
}

// answered counts the answered questions of a kind.
func (p *prober) answered(k kind) int { return p.tally(k).Answered }

// tally counts the questions of a kind.
func (p *prober) tally(k kind) Tally { return tally(p.questions, k) }

// tally counts those of some questions that are of a kind.
func tally(questions []*question, k kind) Tally {
	var t Tally
	for _, q := range questions {
		if q.kind != k || q.sent.IsZero() {
			continue
		}
		t.Sent++
		t.Bytes = max(t.Bytes, len(q.datagram))
		if q.answered {
			t.Answered++
		}
	}
	return t
}

// sum sums up the answers.
func (p *prober) sum() {
	ep := p.endpoint
	var trips, others []time.Duration
	for _, q := range p.questions {
		switch {
		case !q.answered:
			continue
		case q.kind == plain:
			trips = append(trips, q.rtt)
		case q.kind == brief:
			ep.LongestTTL = max(ep.LongestTTL, Millis(time.Duration(q.ttl)*time.Millisecond))
		}
		others = append(others, q.rtt)
	}
	if len(trips) == 0 {
		trips = others // all there is to show
	}
	t := p.tally(plain)
	ep.Sent, ep.Lost = t.Sent, t.Sent-t.Answered
	if len(trips) == 0 {
		return
	}
	slices.Sort(trips)
	ep.Min, ep.Median, ep.Max = Millis(trips[0]), Millis(trips[len(trips)/2]), Millis(trips[len(trips)-1])
}
