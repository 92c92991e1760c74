package core

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// seeded returns a source of bytes that are the same in every run.
func seeded(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

// at makes an instant, d after an arbitrary origin.
func at(d time.Duration) Time {
	return Time{Mono: time.Hour + d, Wall: 1_796_000_000_000 + d.Milliseconds()}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func testKey(t testing.TB, auth apikey.Auth) apikey.Key {
	t.Helper()
	key, err := apikey.New(auth, 7, apikey.DefaultQuotas(), seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// serverIDs of four servers, oldest first.
func serverID(n int) ident.ServerID {
	id, err := ident.NewServerID(time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC), uint32(n))
	if err != nil {
		panic(err)
	}
	return id
}

func testServers(n int) []Server {
	var servers []Server
	for i := range n {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)}), 29292)
		servers = append(servers, Server{serverID(i), []netip.AddrPort{addr}})
	}
	return servers
}

// newTestCore makes a core that knows n servers, at instant 0.
func newTestCore(t testing.TB, n int, change func(*Config)) *Core {
	t.Helper()
	cfg := Config{Key: testKey(t, apikey.AuthAES), Entropy: seeded(2)}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n > 0 {
		if err := c.SetMembership(at(0), testServers(n)); err != nil {
			t.Fatal(err)
		}
		drainEvents(c)
	}
	return c
}

// askOne is a request for one token.
func askOne() *Request {
	return &Request{Resources: []wire.Resource{{Bucket: ident.Bucket("checkout", 1000, 100), Window: 1000, Rate: 100, Tokens: 1}}}
}

func drainSends(c *Core, now Time) []Send {
	var sends []Send
	var out Send
	for c.PollSend(now, &out) {
		s := out
		s.Payload = append([]byte(nil), out.Payload...)
		sends = append(sends, s)
	}
	return sends
}

func drainEvents(c *Core) []Event {
	var events []Event
	var ev Event
	for c.PollEvent(&ev) {
		kept := ev
		kept.Completion.Guards = append([]GuardResult(nil), ev.Completion.Guards...)
		kept.Completion.Resources = append([]ResourceResult(nil), ev.Completion.Resources...)
		events = append(events, kept)
	}
	return events
}

// responder answers as an r-server would, with numbers of the test's choice.
type responder struct {
	credential *wire.Credential
	sealer     *wire.Sealer
	scratch    wire.Scratch
}

func newResponder(t testing.TB, key apikey.Key) *responder {
	t.Helper()
	credential, err := wire.NewCredential(key)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := wire.NewSealer(seeded(3))
	if err != nil {
		t.Fatal(err)
	}
	return &responder{credential: credential, sealer: sealer}
}

// reply is what a responder answers; zero grants everything and keeps the port.
type reply struct {
	changePort bool
	latency    uint32
	deficit    uint16
}

// answer returns server id's answer to a request datagram.
func (r *responder) answer(t testing.TB, request []byte, id ident.ServerID, say reply) []byte {
	t.Helper()
	sent, pdu := r.open(t, request)
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		t.Fatal(err)
	}
	var a wire.Answer
	for range v.Guards() {
		a.Latencies = append(a.Latencies, say.latency)
	}
	for range v.Resources() {
		a.Rates = append(a.Rates, 1)
		a.Deficits = append(a.Deficits, say.deficit)
	}
	h := wire.Header{KeyID: uint64(id), UniqueID: sent.UniqueID, Timestamp: sent.Timestamp, Steering: 1}
	if say.changePort {
		h.Steering = 0
	}
	b, err := r.credential.AppendResponse(nil, r.sealer, &h, &v, &a)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compose seals an answer of any blocks: those of the request that it would be
// the answer to.
func (r *responder) compose(t testing.TB, uid wire.UniqueID, id ident.ServerID, guards, resources []said) []byte {
	t.Helper()
	return r.composeIn(t, wire.Layout2, uid, id, guards, resources)
}

// composeIn is compose in a layout.
func (r *responder) composeIn(t testing.TB, l wire.Layout, uid wire.UniqueID, id ident.ServerID, guards, resources []said) []byte {
	t.Helper()
	return r.composeHeaded(t, l, &wire.Header{KeyID: uint64(id), UniqueID: uid, Steering: 1}, guards, resources)
}

// composeHeaded seals an answer of any blocks under any header.
func (r *responder) composeHeaded(t testing.TB, layout wire.Layout, h *wire.Header, guards, resources []said) []byte {
	t.Helper()
	question := wire.Request{Layout: layout, DedupTTL: 1}
	var a wire.Answer
	for _, s := range guards {
		question.Guards = append(question.Guards, s.guard)
		a.Latencies = append(a.Latencies, s.number)
	}
	for _, s := range resources {
		question.Resources = append(question.Resources, s.resource)
		a.Rates = append(a.Rates, s.rate)
		a.Deficits = append(a.Deficits, uint16(s.number))
	}
	datagram, err := r.credential.AppendRequest(nil, r.sealer, h, &question)
	if err != nil {
		t.Fatal(err)
	}
	_, pdu := r.open(t, datagram)
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		t.Fatal(err)
	}
	b, err := r.credential.AppendResponse(nil, r.sealer, h, &v, &a)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// open opens a datagram of a client.
func (r *responder) open(t testing.TB, datagram []byte) (h wire.Header, pdu []byte) {
	t.Helper()
	var e wire.Envelope
	if err := wire.ParseEnvelope(datagram, &e); err != nil {
		t.Fatal(err)
	}
	pdu, err := r.credential.Open(&e, &r.scratch)
	if err != nil {
		t.Fatal(err)
	}
	return e.Header, pdu
}
