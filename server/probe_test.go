package server

import (
	"crypto/aes"
	"crypto/cipher"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
)

// probe makes and opens datagrams of one key, valid ones and others, and is cheap to use a million
// times. A datagram that it makes is valid until the next.
type probe struct {
	key        apikey.Key
	auth       apikey.Auth
	credential *wire.Credential
	sealer     *wire.Sealer
	secret     [32]byte
	aead       cipher.AEAD // AES mode only
	scratch    wire.Scratch
	buf        []byte
}

func newProbe(tb testing.TB, k apikey.Key) *probe {
	tb.Helper()
	c := newClient(tb, k)
	p := &probe{key: k, auth: k.Auth(), credential: c.credential, sealer: c.sealer, secret: k.Secret()}
	if p.auth != apikey.AuthAES {
		return p
	}
	block, err := aes.NewCipher(p.secret[:])
	if err != nil {
		tb.Fatal(err)
	}
	if p.aead, err = cipher.NewGCM(block); err != nil {
		tb.Fatal(err)
	}
	return p
}

func newProbes(tb testing.TB, keys []apikey.Key) (probes []*probe) {
	tb.Helper()
	for _, k := range keys {
		probes = append(probes, newProbe(tb, k))
	}
	return probes
}

// wrap makes an authentic datagram of any PDU, well formed or not. Its buffer is the caller's to
// change until the next.
func (p *probe) wrap(header *wire.Header, pdu []byte) []byte {
	empty := wire.Request{Layout: wire.Layout2, DedupTTL: 60}
	b, err := p.credential.AppendRequest(p.buf[:0], p.sealer, header, &empty)
	if err != nil {
		panic(err)
	}
	const emptyPDU = 12
	b = b[:len(b)-emptyPDU]
	if p.auth != apikey.AuthAES {
		b = append(b, pdu...)
		p.buf = b
		return b
	}
	head := len(b)
	nonceAt, tagAt := head-28, head-16
	b = p.aead.Seal(b, b[nonceAt:tagAt], pdu, b[:tagAt])
	copy(b[tagAt:], b[head+len(pdu):])
	p.buf = b
	return b[:head+len(pdu)]
}
