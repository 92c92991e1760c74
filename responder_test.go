package weir

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// testKey returns a key of a tenant for one test.
func testKey(t testing.TB, auth apikey.Auth) apikey.Key {
	t.Helper()
	key, err := apikey.New(auth, 7, apikey.DefaultQuotas(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// patientKey returns a key whose quotas allow any horizon, and patient a policy
// that asks again every two seconds for minutes: on real sockets and a busy
// machine no deadline decides a test.
func patientKey(t testing.TB, auth apikey.Auth) apikey.Key {
	t.Helper()
	quotas := apikey.DefaultQuotas()
	quotas.DedupTTL = 1 << 30
	key, err := apikey.NewLegacy(auth, 7, quotas, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func patient() policy.Policy {
	p := policy.StrictOldest()
	p.Unit, p.Replays = 2*time.Second, 100
	return p
}

// A responder is a scripted r-server: it opens what it receives with package
// wire and answers as it is told.
type responder struct {
	t          testing.TB
	id         ident.ServerID
	conn       udp.Conn
	credential *wire.Credential
	sealer     *wire.Sealer
	ended      chan struct{}

	mu       sync.Mutex
	script   func(*exchange)
	requests int // datagrams
	seen     map[wire.UniqueID]int
	reports  []wire.Observation
	peers    []netip.AddrPort // that requests came from, each once
}

// An exchange is one request and the answer that the script may change. By
// default it is granted.
type exchange struct {
	from    netip.AddrPort
	request *wire.RequestView
	repeat  int // how often this identity came before
	header  wire.Header
	answer  wire.Answer
	silent  bool
	raw     []byte        // answered instead, if not nil
	copies  int           // how often more
	delay   time.Duration // virtual or not
}

// startResponder begins to serve on a stack at an address, until the test ends.
func startResponder(t testing.TB, s udp.Stack, addr string, id ident.ServerID, key apikey.Key) *responder {
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
	r := &responder{
		t: t, id: id, conn: conn, credential: credential, sealer: sealer,
		ended: make(chan struct{}), seen: make(map[wire.UniqueID]int),
	}
	go r.serve()
	t.Cleanup(r.stop)
	return r
}

// stop ends the responder; what arrives then is lost.
func (r *responder) stop() {
	r.conn.Close()
	<-r.ended
}

// do changes the script for later requests.
func (r *responder) do(script func(*exchange)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = script
}

// member is how a client finds the responder.
func (r *responder) member() discovery.Server {
	return discovery.Server{ID: r.id, Addrs: []netip.AddrPort{r.conn.LocalAddr()}}
}

// counts returns how many requests came, and how many different ones.
func (r *responder) counts() (datagrams, identities int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests, len(r.seen)
}

func (r *responder) reported() []wire.Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reports)
}

// sources returns the addresses that requests came from, in order of appearance.
func (r *responder) sources() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.peers)
}

func (r *responder) serve() {
	defer close(r.ended)
	var envelope wire.Envelope
	var scratch wire.Scratch
	ds := []udp.Datagram{{Buf: make([]byte, wire.BufferSize)}}
	for {
		n, err := r.conn.Read(ds)
		if udp.Closed(err) {
			return
		}
		if n == 0 {
			continue
		}
		if err := wire.ParseEnvelope(ds[0].Payload(), &envelope); err != nil {
			r.t.Errorf("a client sent %v", err)
			continue
		}
		pdu, err := r.credential.Open(&envelope, &scratch)
		if err != nil {
			continue // another key: silence, as a server does
		}
		if kind, err := wire.PDUKind(pdu); err != nil || kind != wire.KindRequest {
			r.takeReport(pdu)
			continue
		}
		r.answer(ds[0].Peer, &envelope.Header, pdu)
	}
}

func (r *responder) takeReport(pdu []byte) {
	var v wire.ReportView
	if err := wire.ParseReport(pdu, &v); err != nil {
		r.t.Errorf("a client sent a report: %v", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range v.Len() {
		r.reports = append(r.reports, v.At(i))
	}
}

func (r *responder) answer(from netip.AddrPort, h *wire.Header, pdu []byte) {
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		r.t.Errorf("a client sent a request: %v", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := exchange{
		from: from, request: &v, repeat: r.seen[h.UniqueID],
		header: wire.Header{KeyID: uint64(r.id), UniqueID: h.UniqueID, Timestamp: h.Timestamp, Steering: 1},
		answer: wire.Answer{
			Latencies: make([]uint32, v.Guards()), Rates: make([]uint32, v.Resources()), Deficits: make([]uint16, v.Resources()),
		},
	}
	r.requests++
	r.seen[h.UniqueID]++
	if !slices.Contains(r.peers, from) {
		r.peers = append(r.peers, from)
	}
	for i := range v.Resources() {
		e.answer.Rates[i] = uint32(v.Resource(i).Tokens)
	}
	if r.script != nil {
		r.script(&e)
	}
	if e.silent {
		return
	}
	b := e.raw
	if b == nil {
		var err error
		if b, err = r.credential.AppendResponse(nil, r.sealer, &e.header, &v, &e.answer); err != nil {
			r.t.Error(err)
			return
		}
	}
	send := func() {
		for range 1 + e.copies {
			r.conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: from}}) // a failure is a loss
		}
	}
	if e.delay > 0 {
		time.AfterFunc(e.delay, send)
		return
	}
	send()
}

// zone is a resolver whose records a test writes.
type zone struct {
	mu      sync.Mutex
	srv     []discovery.SRV
	hosts   map[string][]netip.Addr
	ttl     time.Duration
	err     error
	hold    chan struct{} // if not nil, lookups wait for it to be closed
	lookups int
}

func (z *zone) set(ttl time.Duration, members ...discovery.Server) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.ttl, z.srv, z.hosts, z.err = ttl, nil, map[string][]netip.Addr{}, nil
	for _, m := range members {
		host := m.ID.Label() + ".rl.test."
		for _, a := range m.Addrs {
			z.hosts[host] = append(z.hosts[host], a.Addr())
		}
		z.srv = append(z.srv, discovery.SRV{Target: host, Port: m.Addrs[0].Port()})
	}
}

func (z *zone) fail(err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.err = err
}

// block makes lookups hang until release is called.
func (z *zone) block() (release func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	hold := make(chan struct{})
	z.hold = hold
	return func() { close(hold) }
}

func (z *zone) count() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.lookups
}

func (z *zone) enter(ctx context.Context) error {
	z.mu.Lock()
	z.lookups++
	hold := z.hold
	z.mu.Unlock()
	if hold == nil {
		return nil
	}
	select {
	case <-hold:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (z *zone) LookupSRV(ctx context.Context, name string) ([]discovery.SRV, time.Duration, error) {
	if err := z.enter(ctx); err != nil {
		return nil, 0, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err != nil {
		return nil, 0, z.err
	}
	if name != "_ratelimitly._udp.c-7.rl.test" {
		return nil, 0, fmt.Errorf("no such name: %s", name)
	}
	return slices.Clone(z.srv), z.ttl, nil
}

func (z *zone) LookupAddrs(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if err := z.enter(ctx); err != nil {
		return nil, 0, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.err != nil {
		return nil, 0, z.err
	}
	addrs := z.hosts[host+"."]
	if len(addrs) == 0 {
		return nil, 0, fmt.Errorf("no such host: %s", host)
	}
	return slices.Clone(addrs), z.ttl, nil
}
