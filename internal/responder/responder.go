// Package responder is a scripted r-server for tests: it opens requests and
// reports with package wire, and answers as it is told. Beside it stands a zone,
// a resolver whose records a test writes. Both may be changed while they serve.
package responder

import (
	"crypto/rand"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// A Responder is a scripted r-server. Make it with [Start].
type Responder struct {
	ID   ident.ServerID
	t    testing.TB
	conn udp.Conn

	credential *wire.Credential
	sealer     *wire.Sealer
	ended      chan struct{}

	mu     sync.Mutex
	script func(*Exchange)
	log    Log
	seen   map[wire.UniqueID]int // how often each identity came
}

// A Log is what a responder received.
type Log struct {
	Requests   []wire.UniqueID // of every datagram
	Sources    []netip.AddrPort
	Reports    []wire.Observation
	Unopenable int // datagrams of another key
}

// Identities returns how many different requests came.
func (l Log) Identities() int {
	different := make(map[wire.UniqueID]bool)
	for _, id := range l.Requests {
		different[id] = true
	}
	return len(different)
}

// Peers returns where requests came from, each once, in the order of appearance.
func (l Log) Peers() []netip.AddrPort {
	var peers []netip.AddrPort
	for _, from := range l.Sources {
		if !slices.Contains(peers, from) {
			peers = append(peers, from)
		}
	}
	return peers
}

// An Exchange is one request and the answer to it, which the script may change.
// As it comes, everything is granted at once and the port is to be kept.
type Exchange struct {
	From    netip.AddrPort
	Request *wire.RequestView
	Repeat  int // how often the identity came before
	Header  wire.Header
	Answer  wire.Answer
	Raw     []byte // answered instead, if not nil
	Silent  bool
	Copies  int // how often more it is answered
	Delay   time.Duration
}

// Start serves on a stack at an address, for one key, until the test ends.
func Start(t testing.TB, s udp.Stack, addr string, id ident.ServerID, key apikey.Key) *Responder {
	t.Helper()
	conn, err := s.Listen(netip.MustParseAddrPort(addr), udp.Options{ReadBuffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	credential, err := wire.NewCredential(key)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := wire.NewSealer(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &Responder{
		ID: id, t: t, conn: conn, credential: credential, sealer: sealer,
		ended: make(chan struct{}), seen: make(map[wire.UniqueID]int),
	}
	go r.serve()
	t.Cleanup(r.Stop)
	return r
}

// Stop ends the responder. What is sent to it later is lost.
func (r *Responder) Stop() {
	r.conn.Close()
	<-r.ended
}

// Do makes script judge later requests, one at a time.
func (r *Responder) Do(script func(*Exchange)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = script
}

// Member is how a client finds the responder.
func (r *Responder) Member() discovery.Server {
	return discovery.Server{ID: r.ID, Addrs: []netip.AddrPort{r.conn.LocalAddr()}}
}

// Log returns what came until now.
func (r *Responder) Log() Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.log
	l.Requests, l.Sources, l.Reports = slices.Clone(l.Requests), slices.Clone(l.Sources), slices.Clone(l.Reports)
	return l
}

func (r *Responder) serve() {
	defer close(r.ended)
	var envelope wire.Envelope
	var scratch wire.Scratch
	for d := range udp.Datagrams(r.conn, wire.BufferSize) {
		if err := wire.ParseEnvelope(d.Payload(), &envelope); err != nil {
			r.t.Errorf("server %v received no datagram of the protocol: %v", r.ID, err)
			continue
		}
		pdu, err := r.credential.Open(&envelope, &scratch)
		if err != nil {
			r.mu.Lock()
			r.log.Unopenable++
			r.mu.Unlock()
			continue
		}
		r.receive(d.Peer, &envelope.Header, pdu)
	}
}

func (r *Responder) receive(from netip.AddrPort, h *wire.Header, pdu []byte) {
	var asked wire.RequestView
	if wire.ParseRequest(pdu, &asked) == nil {
		r.answer(from, h, &asked)
		return
	}
	var report wire.ReportView
	if err := wire.ParseReport(pdu, &report); err != nil {
		r.t.Errorf("server %v received neither a request nor a report: %v", r.ID, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range report.Len() {
		r.log.Reports = append(r.log.Reports, report.At(i))
	}
}

func (r *Responder) answer(from netip.AddrPort, h *wire.Header, asked *wire.RequestView) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Exchange{
		From:    from,
		Request: asked,
		Repeat:  r.seen[h.UniqueID],
		Header:  wire.Header{KeyID: uint64(r.ID), UniqueID: h.UniqueID, Timestamp: h.Timestamp, Steering: 1},
		Answer: wire.Answer{
			Latencies: make([]uint32, asked.Guards()),
			Rates:     make([]uint32, asked.Resources()),
			Deficits:  make([]uint16, asked.Resources()),
		},
	}
	for i := range asked.Resources() {
		e.Answer.Rates[i] = uint32(asked.Resource(i).Tokens)
	}
	r.seen[h.UniqueID]++
	r.log.Requests = append(r.log.Requests, h.UniqueID)
	r.log.Sources = append(r.log.Sources, from)
	if r.script != nil {
		r.script(&e)
	}
	if e.Silent {
		return
	}
	b := e.Raw
	if b == nil {
		var err error
		if b, err = r.credential.AppendResponse(nil, r.sealer, &e.Header, asked, &e.Answer); err != nil {
			r.t.Error(err)
			return
		}
	}
	send := func() {
		for range 1 + e.Copies {
			_, _ = r.conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: from}}) // a failure is a loss
		}
	}
	if e.Delay <= 0 {
		send()
		return
	}
	time.AfterFunc(e.Delay, send)
}
