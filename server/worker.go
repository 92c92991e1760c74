package server

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
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

	yields     bool // to others of the process, now and then
	moderation moderation
	standing   standing
	flows      *flows        // nil if the worker does not steer
	received   atomic.Uint64 // datagrams read
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
	if ttl := w.request.DedupTTL; ttl > 0 && waited(now, in.Received) > int64(ttl) { // none is the engine's to drop
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
	w.moderation.dropped++
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

// yieldEvery is how often a worker has the Go runtime's scheduler choose again. A goroutine that only ever waits in
// system calls is never chosen, and the runtime's monitor takes one that was not for 10 ms for one that keeps others
// from running: it takes the processor from it, and looks every 20 microseconds for more of that kind, for a while. Where the
// scheduler has no processor to spare a worker does not yield: it would wait until all others have had their turn.
const yieldEvery = int64(5 * time.Millisecond)

// run answers what comes in until the socket is closed. Datagrams that are read at once
// are decided at one time, for reading the clock costs as much as a bucket, and answered
// at once; but long ones wait for short ones, see [backlog].
func (w *worker) run(ctx context.Context) {
	in, long := make([]udp.Datagram, batchSize), newBacklog()
	for i := range in {
		in[i].Buf = make([]byte, wire.MaxDatagram+1)
	}
	out := newAnswers()
	failures, decided := 0, 0 // decided: since the last look at what is dropped of it
	yielded := int64(0)       // when, in ns
	for {
		n, err := w.read(in, long)
		if udp.Closed(err) {
			return
		}
		if err != nil {
			w.counts.readErrors.Add(1)
			if failures++; failures > errorsInARow && !pause(ctx, errorPause) {
				return
			}
			n = 0 // long datagrams that wait go on waiting for nobody
		} else {
			failures = 0
		}
		w.received.Add(uint64(n))
		now := w.clock.Now()
		if n > 0 {
			w.standing.read(now, &in[0])
		}
		for i := range in[:n] {
			if in[i].N > longBytes {
				long.put(&in[i], now)
			} else {
				w.answerInto(out, now, &in[i])
				decided++
			}
		}
		w.flush(out, now.Mono)
		for first := now.Mono; long.n > 0; {
			d := long.next()
			first = min(first, d.read)
			decided++
			if w.answerInto(out, now, &d.Datagram); out.taken == longAtOnce || long.n == 0 {
				w.flush(out, first)
				break
			}
		}
		if long.n == 0 { // else there is something to do
			w.moderation.batch(now.Mono, decided, n == len(in))
			decided = 0
		}
		if w.yields && now.Mono-yielded > yieldEvery {
			yielded = now.Mono
			runtime.Gosched()
		}
	}
}

// read reads what there is. It waits for something only if nothing of before is left.
func (w *worker) read(in []udp.Datagram, long *backlog) (int, error) {
	if long.n == 0 {
		return w.conn.Read(in)
	}
	return w.conn.ReadReady(in[:min(len(in), long.room())])
}

// answers are those of datagrams that are decided together, with space for them.
type answers struct {
	space [batchSize][]byte
	out   [batchSize]udp.Datagram
	n     int
	taken int // datagrams decided, with and without an answer
}

func newAnswers() *answers {
	a := new(answers)
	for i := range a.space {
		a.space[i] = make([]byte, wire.BufferSize)
	}
	return a
}

// answerInto takes a datagram through, and adds its answer, if there is one.
func (w *worker) answerInto(a *answers, now limiter.Time, d *udp.Datagram) {
	w.out = a.space[a.n]
	a.taken++
	if answer := w.handle(now, d); answer != nil {
		a.out[a.n] = udp.Datagram{Buf: answer, N: len(answer), Peer: d.Peer, Local: d.Local}
		a.n++
	}
}

// flush sends the answers to datagrams of which the first was read at a time, in ns.
func (w *worker) flush(a *answers, first int64) {
	if sent := w.send(a.out[:a.n]); sent > 0 {
		w.counts.latency.observe(time.Duration(w.clock.Now().Mono-first), uint64(sent))
	}
	a.n, a.taken = 0, 0
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
