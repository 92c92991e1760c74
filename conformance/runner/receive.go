package runner

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/wire"
)

// receive takes in a datagram that came to a server.
func (p *play) receive(raw *packet) {
	d := p.in.open(raw)
	if d == nil {
		return
	}
	uid := d.envelope.Header.UniqueID
	a, known := p.byUID[uid], true
	if a == nil {
		if a, known = p.whose(d), false; a == nil {
			return
		}
	}
	p.checkNonce(d, a)
	switch {
	case !known && a.first == nil:
		p.begin(a, d)
	case !known && a.report != nil: // a report's further datagrams have identities of their own
		p.byUID[uid] = a
	case !known:
		p.in.fail("identity", secHeader, fmt.Sprintf("one unique_id in all sends of %s", p.name(a)), "another one in a datagram to %s", d.server)
		p.byUID[uid] = a
	case d.kind == wire.KindRequest && d.label != p.name(a):
		p.in.fail("identity", secHeader, "a fresh unique_id for every logical request", "%s with that of %s", d.label, p.name(a))
		if other := p.asked[d.label]; other != nil && other.submit != nil {
			a = other
			if a.first == nil {
				p.begin(a, d)
			}
		}
	case (d.kind == wire.KindReport) != (a.report != nil):
		p.in.fail("identity", secHeader, "a fresh unique_id for every report", "that of %s", p.name(a))
		return
	}
	if a.report == nil && p.seal && !bytes.Equal(d.data, a.first) {
		p.in.fail("same-bytes", secAuth, fmt.Sprintf("the bytes of the first datagram in every send of %s", p.name(a)),
			"other ones in a datagram to %s, %v later", d.server, d.at.Sub(a.anchor).Round(time.Millisecond))
	}
	a.sends = append(a.sends, d)
	a.from[d.server] = d.from
	if _, seen := a.began[d.server]; !seen {
		a.began[d.server] = d.from
	}
}

// whose finds the request or report that a datagram of a new identity is of.
func (p *play) whose(d *datagram) *asked {
	if d.kind == wire.KindReport {
		for _, a := range p.order {
			if a.report != nil && !a.told.IsZero() && p.reportFits(d, a.report) {
				return a
			}
		}
		p.in.fail("report", secPDU, "the observations that were to be reported", "others, to %s", d.server)
		return nil
	}
	a := p.asked[d.label]
	if a == nil || a.submit == nil || a.told.IsZero() {
		p.in.fail("label", secPDU, "the label of a request that was submitted", "%q", d.label)
		return nil
	}
	return a
}

// reportFits reports whether every observation of a datagram is one of a report's.
func (p *play) reportFits(d *datagram, r *conformance.Report) bool {
	var want []string
	for i := range r.Observations {
		want = append(want, sayObservation(encodeObservation(&r.Observations[i], p.in.layout)))
	}
	for i := range d.report.Len() {
		if !slices.Contains(want, sayObservation(d.report.At(i))) {
			return false
		}
	}
	return d.report.Len() > 0 && d.report.Len() <= len(r.Observations)
}

// begin is the first datagram of a request or report: from now on its offsets
// count, and its answers are due.
func (p *play) begin(a *asked, d *datagram) {
	uid := d.envelope.Header.UniqueID
	a.uid, a.first, a.anchor, a.any = uid, d.data, d.at, d.from
	p.byUID[uid] = a
	if a.submit == nil {
		return
	}
	p.in.checkAsked(d, a.submit)
	for i := range p.trace.Events {
		e := &p.trace.Events[i]
		if e.Answer == nil || e.Answer.Of != a.submit.ID {
			continue
		}
		p.schedule(a.anchor.Add(time.Duration((e.At-a.at)*p.scale)), func() error { return p.answer(a, e.Answer) })
	}
}

// answer sends one of the trace's answers to where the request came from.
func (p *play) answer(a *asked, say *conformance.Answer) error {
	b, err := p.in.scribe.answer(say, a.first)
	if err != nil {
		return fmt.Errorf("an answer of %s: %w", say.From, err)
	}
	to, ok := a.from[say.From]
	if !ok {
		to = a.any
	}
	by := say.From
	if say.Via != "" {
		by = say.Via
	}
	return p.world.send(by, to, b)
}

// checkNonce holds a nonce to one datagram: two contents never share one.
func (p *play) checkNonce(d *datagram, a *asked) {
	nonce := string(d.envelope.Nonce())
	if nonce == "" {
		return
	}
	if before, used := p.nonces[nonce]; used && before != d.envelope.Header.UniqueID {
		p.in.fail("nonce", secAuth, "a fresh nonce for every request and report", "that of another one in %s", p.name(a))
	}
	p.nonces[nonce] = d.envelope.Header.UniqueID
}

func (p *play) name(a *asked) string {
	if a.submit != nil {
		return a.submit.ID
	}
	return a.report.ID
}
