package sim

import (
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// sentReport is a report that the arrival-order oracle may not have seen yet.
type sentReport struct {
	id     wire.UniqueID
	sent   time.Duration
	oldest ident.ServerID // of the client's membership then
	placed bool
	pdu    []byte
}

// reportQueue holds the reports of the last horizon, in the order in which they were sent.
type reportQueue struct {
	all  []*sentReport
	head int
	byID map[wire.UniqueID]*sentReport
	free []*sentReport
}

// due returns the first report if it was sent at or before a time, else nil.
func (w *reportQueue) due(sent time.Duration) *sentReport {
	if w.head == len(w.all) || w.all[w.head].sent > sent {
		return nil
	}
	return w.all[w.head]
}

// drop takes out the first report.
func (w *reportQueue) drop() {
	p := w.all[w.head]
	delete(w.byID, p.id)
	w.free = append(w.free, p)
	w.head++
	if 2*w.head >= len(w.all) {
		w.all = w.all[:copy(w.all, w.all[w.head:])]
		w.head = 0
	}
}

// add enters a report that was not sent before.
func (w *reportQueue) add(id wire.UniqueID, sent time.Duration, oldest ident.ServerID, pdu []byte) *sentReport {
	p := &sentReport{}
	if n := len(w.free); n > 0 {
		p, w.free = w.free[n-1], w.free[:n-1]
	}
	*p = sentReport{id: id, sent: sent, oldest: oldest, pdu: append(p.pdu[:0], pdu...)}
	if w.byID == nil {
		w.byID = map[wire.UniqueID]*sentReport{}
	}
	w.byID[id] = p
	w.all = append(w.all, p)
	return p
}

// reportSent shows the submit-order oracle a report, when the first datagram of it is sent.
func (m *Measurer) reportSent(r *Record) error {
	pdu, id, err := m.open(r.Payload)
	if err != nil || m.reports.byID[id] != nil {
		return err
	}
	p := m.reports.add(id, r.At, m.oldest[r.Client], pdu)
	return m.submit.observe(r.At, p.pdu)
}

// reportServed shows the arrival-order oracle a report that the oldest server handles.
func (m *Measurer) reportServed(r *Record) error {
	var env wire.Envelope
	if err := wire.ParseEnvelope(r.Payload, &env); err != nil {
		return err
	}
	p := m.reports.byID[env.Header.UniqueID]
	if p == nil || m.servers[r.Server] != p.oldest {
		return nil
	}
	return m.placeReport(p, r.At)
}

// placeReport shows the arrival-order oracle a report, once.
func (m *Measurer) placeReport(p *sentReport, at time.Duration) error {
	if p.placed {
		return nil
	}
	p.placed = true
	return m.arrival.observe(at, p.pdu)
}
