package roundtrip

import (
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/responder"
	"github.com/weirhq/weir/wire"
)

// Every datagram asks for nothing, under an identity of its own, without a label.
func TestAsksForNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := responder.Start(t, w.net.Host(netip.MustParseAddr("10.0.0.1")), "10.0.0.1:29292", 5, w.key)
		r.Do(func(x *responder.Exchange) {
			if x.Repeat != 0 || x.Request.Guards() != 0 || x.Request.Resources() != 1 || x.Request.Label() != nil {
				t.Errorf("%+v", x.Request)
			}
			if b := x.Request.Resource(0); b.Bucket != bucket || b.Tokens != 0 || b.Window != 1 || b.Rate != 1 {
				t.Errorf("%+v", b)
			}
			if x.Request.DedupTTL != 1000 {
				t.Errorf("dedup TTL %d", x.Request.DedupTTL)
			}
		})
		p := w.run(w.config(r.Member())).Paths[0]
		if log := r.Log(); p.Answered != 500 || len(log.Requests) != 550 || log.Identities() != 550 {
			t.Errorf("%d answers to %d requests", p.Answered, len(log.Requests))
		}
	})
}

// A key's quota bounds how long a question may be remembered.
func TestDedupTTL(t *testing.T) {
	cfg := Config{Key: newKey(t), Timeout: 3 * time.Second}
	if got := cfg.dedupTTL(); got != 2000 {
		t.Errorf("%d", got)
	}
}

// What is no answer of this server's to this question counts as none.
func TestInvalid(t *testing.T) {
	other := newKey(t)
	another := wire.Resource{Bucket: ident.Bucket("another", 1, 1), Window: 1, Rate: 1}
	for name, c := range map[string]struct {
		raw    func(x *responder.Exchange, key apikey.Key) []byte
		forged int
	}{
		"garbage":     {raw: func(*responder.Exchange, apikey.Key) []byte { return []byte("garbage") }},
		"another key": {raw: func(x *responder.Exchange, _ apikey.Key) []byte { return answer(t, x, other, x.Request) }, forged: 550},
		"another identity": {raw: func(x *responder.Exchange, key apikey.Key) []byte {
			x.Header.UniqueID[3]++
			return answer(t, x, key, x.Request)
		}},
		"another bucket": {raw: func(x *responder.Exchange, key apikey.Key) []byte {
			return answer(t, x, key, asks(t, key, another))
		}},
		"a block more": {raw: func(x *responder.Exchange, key apikey.Key) []byte {
			x.Answer.Rates, x.Answer.Deficits = []uint32{0, 0}, []uint16{0, 0}
			return answer(t, x, key, asks(t, key, x.Request.Resource(0), another))
		}},
		"a question": {raw: func(x *responder.Exchange, key apikey.Key) []byte {
			return sealed(t, key, x.Header.UniqueID, x.Request.Resource(0))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r := responder.Start(t, w.net.Host(netip.MustParseAddr("10.0.0.1")), "10.0.0.1:29292", 5, w.key)
				r.Do(func(x *responder.Exchange) { x.Raw = c.raw(x, w.key) })
				p := w.run(w.config(r.Member())).Paths[0]
				if p.Answered != 0 || p.Lost() != 500 || p.Invalid != 550 || p.Stranger != 0 || p.Forged != c.forged {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

// answer makes the datagram of an answer to a request.
func answer(t *testing.T, x *responder.Exchange, key apikey.Key, to *wire.RequestView) []byte {
	t.Helper()
	c, s := seals(t, key)
	b, err := c.AppendResponse(nil, s, &x.Header, to, &x.Answer)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// asks is a request for something.
func asks(t *testing.T, key apikey.Key, r ...wire.Resource) *wire.RequestView {
	t.Helper()
	c, _ := seals(t, key)
	var e wire.Envelope
	var scratch wire.Scratch
	if err := wire.ParseEnvelope(sealed(t, key, wire.UniqueID{}, r...), &e); err != nil {
		t.Fatal(err)
	}
	pdu, err := c.Open(&e, &scratch)
	if err != nil {
		t.Fatal(err)
	}
	v := new(wire.RequestView)
	if err := wire.ParseRequest(pdu, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// sealed makes the datagram of a request.
func sealed(t *testing.T, key apikey.Key, id wire.UniqueID, r ...wire.Resource) []byte {
	t.Helper()
	c, s := seals(t, key)
	b, err := c.AppendRequest(nil, s, &wire.Header{UniqueID: id}, &wire.Request{Layout: wire.Layout2, DedupTTL: 10, Resources: r})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func seals(t *testing.T, key apikey.Key) (*wire.Credential, *wire.Sealer) {
	t.Helper()
	c, err := wire.NewCredential(key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := wire.NewSealer(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}
