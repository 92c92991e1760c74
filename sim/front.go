package sim

import (
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// front is what a datagram is taken through at a server: the same steps as package server's, on
// the same datagrams.
type front struct {
	credential *wire.Credential
	sealer     *wire.Sealer
	envelope   wire.Envelope
	scratch    wire.Scratch
	request    wire.RequestView
	report     wire.ReportView
	answer     wire.Answer
}

func (w *World) openFront() (err error) {
	if w.front.credential, err = wire.NewCredential(w.key); err != nil {
		return err
	}
	w.front.sealer, err = wire.NewSealer(newEntropy(w.seed, "nonces of servers"))
	return err
}

// serve handles the datagram that a worker has taken, and sends the answer.
func (w *World) serve(s *server, k *worker) {
	d := k.busy
	k.busy = nil
	f := &w.front
	pdu, kind := w.open(d)
	if w.err != nil {
		return
	}
	r := w.tell(RecordServe)
	w.about(r, d)
	r.Payload = d.payload
	switch kind {
	case wire.KindRequest:
		if err := wire.ParseRequest(pdu, &f.request); err != nil {
			w.fail("a request cannot be read: %v", err)
			return
		}
		r.Late = (k.taken - d.arrived).Milliseconds() > int64(f.request.DedupTTL)
		if !r.Late {
			r.Verdict = s.engine.Decide(w.engineTime(s), &f.envelope.Header, &f.request, &f.answer)
		}
		r.Keep = !s.spec.Steering || !s.crowded(k)
	case wire.KindReport:
		if err := wire.ParseReport(pdu, &f.report); err != nil {
			w.fail("a report cannot be read: %v", err)
			return
		}
		r.Verdict = s.engine.Observe(w.engineTime(s), &f.envelope.Header, &f.report)
	}
	verdict, keep := r.Verdict, r.Keep
	w.hear(r)
	if answered(verdict) {
		w.reply(s, d, keep)
	}
	w.end(d)
}

// open takes a datagram as far as its PDU.
func (w *World) open(d *datagram) ([]byte, wire.Kind) {
	f := &w.front
	if err := wire.ParseEnvelope(d.payload, &f.envelope); err != nil {
		w.fail("a datagram cannot be read: %v", err)
		return nil, 0
	}
	pdu, err := f.credential.Open(&f.envelope, &f.scratch)
	if err != nil {
		w.fail("a datagram cannot be opened: %v", err)
		return nil, 0
	}
	kind, err := wire.PDUKind(pdu)
	if err != nil {
		w.fail("a datagram is of no kind: %v", err)
	}
	return pdu, kind
}

// answered tells which verdicts are about requests and no drops.
func answered(v limiter.Verdict) bool {
	switch v {
	case limiter.Granted, limiter.Rejected, limiter.RepeatGranted, limiter.RepeatRejected:
		return true
	}
	return false
}

// reply sends the answer to a request.
func (w *World) reply(s *server, d *datagram, keep bool) {
	f := &w.front
	h := wire.Header{
		KeyID:     uint64(s.id),
		UniqueID:  f.envelope.Header.UniqueID,
		Timestamp: w.engineTime(s).Wall,
	}
	if keep {
		h.Steering = 1
	}
	a := w.pool.get()
	a.client, a.server, a.request, a.kind, a.port = d.client, d.server, d.request, d.kind, d.port
	a.answer, a.granted, a.keep = true, f.grants(), keep
	a.luck = thing(d.luck, uint64(d.copy))
	var err error
	if a.payload, err = f.credential.AppendResponse(a.payload[:0], f.sealer, &h, &f.request, &f.answer); err != nil {
		w.fail("an answer cannot be built: %v", err)
		return
	}
	w.counts.Answers++
	w.transmit(a)
}

// grants tells what the answer says to a client: whether every guard passes and nothing is
// missing.
func (f *front) grants() bool {
	for i, latency := range f.answer.Latencies {
		if latency >= f.request.Guard(i).Threshold {
			return false
		}
	}
	for _, deficit := range f.answer.Deficits {
		if deficit > 0 {
			return false
		}
	}
	return true
}
