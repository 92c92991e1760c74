package server

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// keepPort is the steering feedback of every answer: the client shall stay.
const keepPort = 1

// worker takes datagrams from one socket through to their answers. Everything it needs
// for one is its own and used again, so that no datagram allocates.
type worker struct {
	id       ident.ServerID
	clock    Clock
	registry *registry
	counts   *serverCounts
	sealer   *wire.Sealer

	envelope wire.Envelope
	scratch  wire.Scratch
	request  wire.RequestView
	report   wire.ReportView
	answer   wire.Answer
	label    [maxLabel]byte
	out      [wire.BufferSize]byte
}

// handle takes one datagram through: size, envelope, tenant, mode and authentication,
// rate, management flag, PDU, engine. It returns the answer, which is valid until the next
// call, or nothing. Whatever is not authenticated, fresh, well formed and within its
// quotas gets no answer, and is counted.
func (w *worker) handle(now limiter.Time, from netip.AddrPort, datagram []byte) []byte {
	if from.Port() == 0 || !from.Addr().IsValid() || from.Addr().IsUnspecified() {
		return w.drop(nil, dropSource)
	}
	if len(datagram) > wire.MaxDatagram {
		return w.drop(nil, dropTooLong)
	}
	e := &w.envelope
	if wire.ParseEnvelope(datagram, e) != nil {
		return w.drop(nil, dropEnvelope)
	}
	t := w.registry.tenants()[e.Header.KeyID]
	if t == nil {
		return w.drop(nil, dropUnknownKey)
	}
	pdu, key, err := t.open(e, &w.scratch)
	switch {
	case err == nil:
	case errors.Is(err, wire.ErrMode):
		return w.drop(t, dropMode)
	default:
		return w.drop(t, dropAuth)
	}
	if key > 0 {
		t.state.counts.oldKey(now)
	}
	if t.maxRate > 0 && !t.state.gate.admit(now, t.maxRate) {
		return w.drop(t, dropMaxRate)
	}
	if e.Header.Mgmt != 0 {
		return w.drop(t, dropMgmt)
	}
	kind, err := wire.PDUKind(pdu)
	switch {
	case err != nil:
		return w.drop(t, dropMalformed)
	case kind == wire.KindRequest:
		return w.handleRequest(now, t, key, pdu)
	case kind == wire.KindReport:
		return w.handleReport(now, t, pdu)
	}
	return w.drop(t, dropKind)
}

func (w *worker) handleRequest(now limiter.Time, t *tenant, key int, pdu []byte) []byte {
	if wire.ParseRequest(pdu, &w.request) != nil {
		return w.drop(t, dropMalformed)
	}
	question := &w.envelope.Header
	verdict, ok := t.state.decide(now, question, &w.request, &w.answer)
	if !ok {
		return w.drop(nil, dropUnknownKey)
	}
	t.state.counts.verdicts[verdict].Add(1)
	if verdict.Dropped() {
		return nil
	}
	if label := w.request.Label(); len(label) > 0 {
		t.state.labels.count(appendSafeLabel(w.label[:0], label), verdict)
	}
	h := wire.Header{
		KeyID:     uint64(w.id),
		UniqueID:  question.UniqueID,
		Timestamp: now.Wall,
		Steering:  keepPort,
	}
	answer, err := t.keys[key].AppendResponse(w.out[:0], w.sealer, &h, &w.request, &w.answer)
	if err != nil {
		return w.drop(t, dropAnswer)
	}
	return answer
}

func (w *worker) handleReport(now limiter.Time, t *tenant, pdu []byte) []byte {
	if wire.ParseReport(pdu, &w.report) != nil {
		return w.drop(t, dropMalformed)
	}
	verdict, ok := t.state.observe(now, &w.envelope.Header, &w.report)
	if !ok {
		return w.drop(nil, dropUnknownKey)
	}
	t.state.counts.verdicts[verdict].Add(1)
	return nil
}

// drop counts a datagram that gets no answer, under its tenant where that is known.
func (w *worker) drop(t *tenant, r reason) []byte {
	if t == nil {
		w.counts.dropped[r].Add(1)
	} else {
		t.state.counts.dropped[r].Add(1)
	}
	return nil
}

// Errors of reading come one at a time, such as an ICMP message that some systems
// report on the socket. When this many come in a row, each further one costs a pause,
// so that a socket which is broken for good does not take a core.
const (
	errorsInARow = 16
	errorPause   = 10 * time.Millisecond
)

// run answers what comes in until the socket is closed.
func (w *worker) run(ctx context.Context, conn udp.Conn) {
	in := []udp.Datagram{{Buf: make([]byte, wire.MaxDatagram+1)}}
	out := make([]udp.Datagram, 1)
	failures := 0
	for {
		_, err := conn.Read(in)
		if udp.Closed(err) {
			return
		}
		if err != nil {
			w.counts.readErrors.Add(1)
			if failures++; failures > errorsInARow && !pause(ctx, errorPause) {
				return
			}
			continue
		}
		failures = 0
		now := w.clock.Now()
		answer := w.handle(now, in[0].Peer, in[0].Payload())
		if answer == nil {
			continue
		}
		out[0] = udp.Datagram{Buf: answer, N: len(answer), Peer: in[0].Peer, Local: in[0].Local}
		if _, err := conn.Write(out); err != nil {
			w.counts.writeErrors.Add(1)
			continue
		}
		w.counts.latency.observe(time.Duration(w.clock.Now().Mono - now.Mono))
	}
}

// pause waits, or reports false when the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
