package server

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// worker takes datagrams from one socket through to their answers. Everything it needs
// for one is its own and used again, so that no datagram allocates. It serves every
// tenant, and waits for another worker only while that has a decision of the same tenant
// made.
type worker struct {
	id       ident.ServerID
	conn     udp.Conn
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
	out      []byte // space for the next answer

	flows    *flows        // nil if the worker does not steer
	received atomic.Uint64 // datagrams read
}

// handle takes one datagram through: size, envelope, tenant, mode and authentication,
// rate, management flag, PDU, engine. It returns the answer, which is valid until the next
// call, or nothing. Whatever is not authenticated, fresh, well formed and within its
// quotas gets no answer, and is counted.
func (w *worker) handle(now limiter.Time, in *udp.Datagram) []byte {
	from, datagram := in.Peer, in.Payload()
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
		return w.handleRequest(now, t, key, pdu, in)
	case kind == wire.KindReport:
		return w.handleReport(now, t, pdu, in.Peer)
	}
	return w.drop(t, dropKind)
}

func (w *worker) handleRequest(now limiter.Time, t *tenant, key int, pdu []byte, in *udp.Datagram) []byte {
	if wire.ParseRequest(pdu, &w.request) != nil {
		return w.drop(t, dropMalformed)
	}
	if waited(now, in.Received) > int64(w.request.DedupTTL) {
		return w.drop(t, dropLate)
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
		Steering:  w.flows.feedback(now.Mono, in.Peer),
	}
	answer, err := t.keys[key].AppendResponse(w.out[:0], w.sealer, &h, &w.request, &w.answer)
	if err != nil {
		return w.drop(t, dropAnswer)
	}
	return answer
}

// waited returns for how many whole milliseconds a datagram that the system received at a
// time, in Unix ns or 0, lay in its socket. Both times are of the machine's wall clock. One
// that was set in between may make them absurd, and then there is nothing to tell.
func waited(now limiter.Time, received int64) int64 {
	const absurd = 60_000
	ms := int64(now.Wall) - received/1_000_000
	if received == 0 || ms < 0 || ms > absurd {
		return 0
	}
	return ms
}

func (w *worker) handleReport(now limiter.Time, t *tenant, pdu []byte, from netip.AddrPort) []byte {
	if wire.ParseReport(pdu, &w.report) != nil {
		return w.drop(t, dropMalformed)
	}
	verdict, ok := t.state.observe(now, &w.envelope.Header, &w.report)
	if !ok {
		return w.drop(nil, dropUnknownKey)
	}
	t.state.counts.verdicts[verdict].Add(1)
	if !verdict.Dropped() {
		w.flows.reported(from)
	}
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

// batchSize is how many datagrams a worker takes at once, of those that are there.
const batchSize = 32

// run answers what comes in until the socket is closed. Datagrams that are read at once
// are decided at one time, for reading the clock costs as much as a bucket, and answered
// at once.
func (w *worker) run(ctx context.Context) {
	in, out := make([]udp.Datagram, batchSize), make([]udp.Datagram, batchSize)
	space := make([][]byte, batchSize)
	for i := range in {
		in[i].Buf, space[i] = make([]byte, wire.MaxDatagram+1), make([]byte, wire.BufferSize)
	}
	failures := 0
	for {
		n, err := w.conn.Read(in)
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
		w.received.Add(uint64(n))
		now := w.clock.Now()
		answers := 0
		for i := range in[:n] {
			w.out = space[answers]
			if answer := w.handle(now, &in[i]); answer != nil {
				out[answers] = udp.Datagram{Buf: answer, N: len(answer), Peer: in[i].Peer, Local: in[i].Local}
				answers++
			}
		}
		if sent := w.send(out[:answers]); sent > 0 {
			w.counts.latency.observe(time.Duration(w.clock.Now().Mono-now.Mono), uint64(sent))
		}
	}
}

// send writes answers and returns how many the system took. One that it does not take
// keeps back none behind it.
func (w *worker) send(answers []udp.Datagram) (sent int) {
	for len(answers) > 0 {
		n, err := w.conn.Write(answers)
		sent += n
		if err == nil {
			return sent
		}
		w.counts.writeErrors.Add(1)
		answers = answers[min(n+1, len(answers)):]
	}
	return sent
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
