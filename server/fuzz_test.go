package server

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/vectors"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// FuzzDatagram throws any bytes at the whole path of a datagram, once in each mode,
// twice each, so that repeats are met as well. Nothing panics; an answer is never
// longer than its request, opens, and answers it; a datagram that is not authentic
// gets none.
func FuzzDatagram(f *testing.F) {
	for _, v := range vectors.Requests(f) {
		f.Add([]byte(v.PDU), false, v.Time)
		f.Add([]byte(v.Datagram), true, v.Time)
	}
	for _, v := range vectors.Reports(f) {
		f.Add([]byte(v.PDU), false, v.Time)
	}
	for _, v := range vectors.Traps(f) {
		f.Add([]byte(v.PDU), false, uint64(testTime))
	}
	var keys []apikey.Key
	var tenants []Tenant
	for i, auth := range allModes {
		keys = append(keys, newKey(f, auth, uint64(i+1)))
		tenants = append(tenants, Tenant{Keys: keys[i : i+1]})
	}
	for _, key := range keys {
		c := newClient(f, key)
		f.Add(c.request(checkout(1)), true, uint64(testTime))
		f.Add(c.report(observation(1)), true, uint64(testTime))
	}
	f.Fuzz(func(t *testing.T, b []byte, raw bool, at uint64) {
		clock := &fakeClock{now: limiter.Time{Mono: 1, Wall: at % (1 << 41)}}
		w := newWorker(t, clock, workerRules(), slices.Clone(tenants)...)
		for i, key := range keys {
			datagram := b
			if !raw { // b is a PDU
				datagram = wrap(t, key, clock.Now().Wall, b)
			}
			for range 2 {
				checkAnswer(t, w, key, datagram)
				clock.advance(time.Millisecond)
			}
			if !raw && i > 0 && len(datagram) > 50 {
				forged := slices.Clone(datagram)
				forged[50] ^= 1 // the cookie or the nonce
				if answer := w.ask(forged); answer != nil {
					t.Fatalf("%v: a forged datagram is answered with %x", key, answer)
				}
			}
		}
	})
}

// checkAnswer hands in a datagram and judges the answer, if there is one.
func checkAnswer(t *testing.T, w *worker, key apikey.Key, datagram []byte) {
	before := bytes.Clone(datagram)
	answer := w.ask(datagram)
	if !bytes.Equal(datagram, before) {
		t.Fatal("the datagram was changed")
	}
	if answer == nil {
		return
	}
	if len(answer) > len(datagram) {
		t.Fatalf("%d bytes are answered with %d", len(datagram), len(answer))
	}
	var e wire.Envelope
	if err := wire.ParseEnvelope(datagram, &e); err != nil || e.Header.KeyID != key.ID() {
		return // another tenant's: its turn comes
	}
	c := newClient(t, key)
	pdu, err := c.credential.Open(&e, new(wire.Scratch))
	if err != nil {
		t.Fatalf("not authentic, and answered: %v", err)
	}
	var asked wire.RequestView
	if err := wire.ParseRequest(pdu, &asked); err != nil {
		t.Fatalf("no request, and answered: %v", err)
	}
	r := c.open(answer, asked.Layout)
	if r.header.UniqueID != e.Header.UniqueID || r.view.Guards() != asked.Guards() || r.view.Resources() != asked.Resources() {
		t.Fatalf("the answer is to another question: %x to %x", answer, datagram)
	}
	for i := range asked.Guards() {
		if r.view.Guard(i).Tracker != asked.Guard(i).Tracker {
			t.Fatalf("guard %d is another tracker's", i)
		}
	}
	for i := range asked.Resources() {
		if r.view.Resource(i).Bucket != asked.Resource(i).Bucket {
			t.Fatalf("resource %d is another bucket's", i)
		}
	}
}

// wrap makes an authentic datagram of any PDU, well formed or not.
func wrap(t *testing.T, key apikey.Key, at uint64, pdu []byte) []byte {
	c := newClient(t, key)
	c.header.Timestamp = at
	frame := c.request(&wire.Request{Layout: wire.Layout2, DedupTTL: 60})
	const emptyPDU = 12
	head := frame[: len(frame)-emptyPDU : len(frame)-emptyPDU]
	if key.Auth() != apikey.AuthAES {
		return append(head, pdu...)
	}
	secret := key.Secret()
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonceAt, tagAt := len(head)-28, len(head)-16
	sealed := aead.Seal(nil, head[nonceAt:tagAt], pdu, head[:tagAt])
	copy(head[tagAt:], sealed[len(pdu):])
	return append(head, sealed[:len(pdu)]...)
}
