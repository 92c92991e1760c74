package roundtrip

import (
	"errors"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// take judges what came in.
func (p *prober) take(a arrival) {
	var e wire.Envelope
	if wire.ParseEnvelope(a.b, &e) != nil {
		p.path.Invalid++
		return
	}
	q := p.asked[e.Header.UniqueID]
	if q == nil {
		p.path.Invalid++
		return
	}
	pdu, err := p.credential.Open(&e, &p.scratch)
	if err != nil {
		p.path.Invalid++
		if errors.Is(err, wire.ErrAuth) || errors.Is(err, wire.ErrMode) {
			p.path.Forged++
		}
		return
	}
	if !p.answers(pdu) {
		p.path.Invalid++
		return
	}
	if id := ident.ServerID(e.Header.KeyID); id != p.path.Server {
		p.path.Invalid++
		p.path.Stranger = id
		return
	}
	p.count(q, a)
}

// answers reports whether a PDU is a response about the bucket that was asked for.
func (p *prober) answers(pdu []byte) bool {
	var v wire.ResponseView
	if kind, err := wire.PDUKind(pdu); err != nil || kind != wire.KindResponse {
		return false
	}
	return wire.ParseResponse(pdu, p.cfg.Layout, &v) == nil &&
		v.Guards() == 0 && v.Resources() == 1 && v.Resource(0).Bucket == bucket
}

// count counts an answer to a question.
func (p *prober) count(q *question, a arrival) {
	trip := a.at.Sub(q.sent)
	repeat := q.answered
	q.answered = true
	switch {
	case q.warm:
	case repeat:
		p.path.Repeats++
	case trip > p.cfg.Timeout:
		p.path.Late++
	default:
		p.path.add(trip)
	}
}
