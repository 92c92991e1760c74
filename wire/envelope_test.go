package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/vectors"
)

// counting is entropy that a test can name: the bytes n, n+1, …
type counting struct{ n byte }

func (r *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.n
		r.n++
	}
	return len(p), nil
}

// testCredential makes a key and its credential; the same arguments, the same key.
func testCredential(tb testing.TB, auth apikey.Auth, seed byte) *Credential {
	tb.Helper()
	k, err := apikey.New(auth, 7, apikey.DefaultQuotas(), &counting{seed})
	if err != nil {
		tb.Fatal(err)
	}
	c, err := NewCredential(k)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func testSealer(tb testing.TB, seed byte) *Sealer {
	tb.Helper()
	s, err := NewSealer(&counting{seed})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

var modes = []apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES}

// sealRaw makes the datagram of any bytes as PDU, behind a tenant header of any size.
func sealRaw(c *Credential, nonce, header, pdu []byte) []byte {
	return appendRaw(nil, c, nonce, header, pdu)
}

// appendRaw appends what [sealRaw] makes to b, which is empty.
func appendRaw(b []byte, c *Credential, nonce, header, pdu []byte) []byte {
	b = append(b, header...)
	switch c.auth {
	case apikey.AuthNone:
		return append(append(b, 0x4e, 0x41, 4, 0), pdu...)
	case apikey.AuthCookie:
		b = append(append(b, 0x43, 0x41, 36, 0), c.secrets().cookie[:]...)
		return append(b, pdu...)
	}
	b = append(b, 0x41, 0x45, 32, 0)
	b = append(b, nonce...)
	head := len(b)
	b = append(b, make([]byte, 16)...)
	b = c.secrets().aead.Seal(b, nonce, pdu, b[:head])
	// GCM leaves the tag behind the text, where the room before the text is for it.
	copy(b[head:], b[len(b)-16:])
	return b[:len(b)-16]
}

// rawHeader is a tenant header of a size, every field another value.
func rawHeader(size int) []byte {
	b := []byte{0x52, 0x4c, byte(size), byte(size >> 8), 7, 0, 0, 0, 0, 0, 0, 0}
	for i := range 16 {
		b = append(b, byte(0xa0+i))
	}
	b = append(b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	for len(b) < size {
		b = append(b, byte(len(b)))
	}
	return b[:size]
}

func TestEnvelopeFields(t *testing.T) {
	nonce := []byte("twelve bytes")
	for _, auth := range modes {
		for _, size := range []int{40, 41, 44, 100, 1100} {
			t.Run(fmt.Sprintf("%v/%d", auth, size), func(t *testing.T) {
				c := testCredential(t, auth, 1)
				d := sealRaw(c, nonce, rawHeader(size), []byte("any PDU"))
				kept := slices.Clone(d)
				e, pdu, err := open(c, d)
				if err != nil || string(pdu) != "any PDU" {
					t.Fatalf("%v, %q", err, pdu)
				}
				want := Header{KeyID: 7, Timestamp: 0x0807060504030201, Steering: 9, Mgmt: 10}
				copy(want.UniqueID[:], rawHeader(40)[12:])
				if e.Header != want || e.Auth != auth || e.HeaderSize() != size {
					t.Errorf("%+v, %v, %d bytes; want %+v", e.Header, e.Auth, e.HeaderSize(), want)
				}
				if auth == apikey.AuthAES != bytes.Equal(e.Nonce(), nonce) {
					t.Errorf("nonce %x", e.Nonce())
				}
				if len(e.Sealed()) != len(pdu) || auth != apikey.AuthAES && string(e.Sealed()) != "any PDU" {
					t.Errorf("sealed %q", e.Sealed())
				}
				if !bytes.Equal(e.Datagram(), kept) {
					t.Error("opening changed the datagram")
				}
			})
		}
	}
}

func TestEnvelopeIsMalformed(t *testing.T) {
	aes := testCredential(t, apikey.AuthAES, 1)
	header := rawHeader(40)
	whole := sealRaw(aes, []byte("twelve bytes"), header, []byte("a PDU"))
	put := func(b []byte, at int, v uint16) []byte {
		b = slices.Clone(b)
		binary.LittleEndian.PutUint16(b[at:], v)
		return b
	}
	short := func(size int) []byte { return append(put(header, 2, uint16(size))[:size], 0x4e, 0x41, 4, 0) }
	for name, d := range map[string][]byte{
		"nothing":                          nil,
		"one byte":                         whole[:1],
		"three bytes":                      whole[:3],
		"four bytes":                       whole[:4],
		"header cut":                       whole[:39],
		"header only":                      whole[:40],
		"authentication type only":         whole[:42],
		"authentication size cut":          whole[:43],
		"authentication header only":       whole[:44],
		"authentication cut":               whole[:71],
		"header type":                      put(whole, 0, 0x4c53),
		"header type 0":                    put(whole, 0, 0),
		"header size 0":                    put(whole, 2, 0),
		"header size 4":                    put(whole, 2, 4),
		"header size 39":                   put(whole, 2, 39),
		"header size 65535":                put(whole, 2, 65535),
		"header size all there is":         put(whole, 2, uint16(len(whole))),
		"header size one more":             put(whole, 2, uint16(len(whole)+1)),
		"header size into the next TLV":    put(whole, 2, 41),
		"authentication type unknown":      put(whole, 40, 0x4145),
		"AES of size 4":                    put(whole, 42, 4),
		"AES of size 31":                   put(whole, 42, 31),
		"AES of size 33":                   put(whole, 42, 33),
		"AES of size 65535":                put(whole, 42, 65535),
		"none of size 3":                   append(slices.Clone(header), 0x4e, 0x41, 3, 0),
		"none of size 5":                   append(slices.Clone(header), 0x4e, 0x41, 5, 0, 0),
		"none of size 0":                   append(slices.Clone(header), 0x4e, 0x41, 0, 0),
		"cookie of size 35":                append(slices.Clone(header), append([]byte{0x43, 0x41, 35, 0}, make([]byte, 31)...)...),
		"cookie of size 37":                append(slices.Clone(header), append([]byte{0x43, 0x41, 37, 0}, make([]byte, 33)...)...),
		"cookie of 36, 35 of them there":   append(slices.Clone(header), append([]byte{0x43, 0x41, 36, 0}, make([]byte, 31)...)...),
		"header of 4, the next TLV whole":  short(4),
		"header of 36, the next TLV whole": short(36),
		"header of 39, the next TLV whole": short(39),
		"1201 bytes":                       sealRaw(aes, []byte("twelve bytes"), header, make([]byte, 1201-72)),
	} {
		e := Envelope{authAt: 9}
		if err := ParseEnvelope(d, &e); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		if e.Header != (Header{}) || e.Auth != 0 || e.Datagram() != nil || e.HeaderSize() != 0 || e.Nonce() != nil || e.Sealed() != nil {
			t.Errorf("%s: the envelope is not zero", name)
		}
		if _, err := aes.Open(&e, new(Scratch)); !errors.Is(err, ErrMode) {
			t.Errorf("%s: opening a zero envelope: %v", name, err)
		}
	}
	for _, c := range []struct {
		auth apikey.Auth
		pdu  int
	}{{apikey.AuthNone, 1200 - 44}, {apikey.AuthCookie, 1200 - 76}, {apikey.AuthAES, 1200 - 72}} {
		d := sealRaw(testCredential(t, c.auth, 1), []byte("twelve bytes"), header, make([]byte, c.pdu))
		if _, pdu, err := open(testCredential(t, c.auth, 1), d); err != nil || len(d) != 1200 || len(pdu) != c.pdu {
			t.Errorf("%v, 1200 bytes: %v, %d", c.auth, err, len(pdu))
		}
	}
}

func TestEmptyPDU(t *testing.T) {
	for _, auth := range modes {
		c := testCredential(t, auth, 1)
		_, pdu, err := open(c, sealRaw(c, []byte("twelve bytes"), rawHeader(40), nil))
		if err != nil || len(pdu) != 0 {
			t.Errorf("%v: %v, %x", auth, err, pdu)
		}
		if _, err := PDUKind(pdu); !errors.Is(err, ErrMalformed) {
			t.Errorf("%v: kind of nothing: %v", auth, err)
		}
	}
}

func TestOnlyTheKeyOpens(t *testing.T) {
	for _, sealed := range modes {
		d := sealRaw(testCredential(t, sealed, 1), []byte("twelve bytes"), rawHeader(40), []byte("a PDU"))
		for _, opened := range modes {
			_, pdu, err := open(testCredential(t, opened, 2), d)
			switch {
			case sealed != opened:
				if !errors.Is(err, ErrMode) || pdu != nil {
					t.Errorf("%v opened with %v: %v", sealed, opened, err)
				}
			case sealed == apikey.AuthNone:
				if err != nil {
					t.Errorf("none has no secret: %v", err)
				}
			default:
				if !errors.Is(err, ErrAuth) || pdu != nil {
					t.Errorf("%v with another key: %v", sealed, err)
				}
			}
		}
	}
}

// Every bit of an AES datagram is authenticated, of a tenant header of any size too.
func TestAESRefusesEveryChangedBit(t *testing.T) {
	c := testCredential(t, apikey.AuthAES, 1)
	for _, size := range []int{40, 44} {
		d := sealRaw(c, []byte("twelve bytes"), rawHeader(size), []byte("a PDU that is sealed"))
		for bit := range len(d) * 8 {
			d[bit/8] ^= 1 << (bit % 8)
			if _, pdu, err := open(c, d); err == nil {
				t.Errorf("header of %d: bit %d changed, opened as %q", size, bit, pdu)
			}
			d[bit/8] ^= 1 << (bit % 8)
		}
		if _, _, err := open(c, d); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCookieRefusesEveryChangedBit(t *testing.T) {
	c := testCredential(t, apikey.AuthCookie, 1)
	d := sealRaw(c, nil, rawHeader(40), []byte("a PDU"))
	for bit := 44 * 8; bit < 76*8; bit++ {
		d[bit/8] ^= 1 << (bit % 8)
		if _, _, err := open(c, d); !errors.Is(err, ErrAuth) {
			t.Errorf("bit %d of the cookie changed: %v", bit-44*8, err)
		}
		d[bit/8] ^= 1 << (bit % 8)
	}
}

// Every beginning of every vector is refused, or is a whole datagram whose PDU was cut.
func TestCutVectors(t *testing.T) {
	for _, v := range vectors.Requests(t) {
		c := credentialFor(t, v.Key)
		for n := range len(v.Datagram) {
			_, pdu, err := open(c, v.Datagram[:n:n])
			if err == nil {
				err = ParseRequest(pdu, new(RequestView))
			}
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrAuth) {
				t.Fatalf("%s cut to %d bytes: %v", v.Case, n, err)
			}
		}
	}
}

func TestCredentialHidesItsSecret(t *testing.T) {
	for _, auth := range modes[1:] {
		c := testCredential(t, auth, 0x41)
		if c.KeyID() != 7 || c.Auth() != auth {
			t.Errorf("%d, %v", c.KeyID(), c.Auth())
		}
		holder := struct {
			Public  *Credential
			private *Credential
			value   Credential
		}{c, c, Credential{c.keyID, c.auth, c.secrets}}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "credential", c, "holder", slog.AnyValue(holder))
		out := log.String()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p"} {
			out += fmt.Sprintf(verb+" "+verb+" "+verb+"\n", c, holder, []*Credential{c})
		}
		for _, form := range []string{string(c.secrets().cookie[:8]), hex.EncodeToString(c.secrets().cookie[:4]), "65 66 67", "0x41, 0x42"} {
			if strings.Contains(strings.ToLower(out), strings.ToLower(form)) {
				t.Errorf("%v: %q shows in\n%s", auth, form, out)
			}
		}
		want := fmt.Sprintf("wire.Credential(%v, key_id=7)", auth)
		if got := fmt.Sprintf("%#v", c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := fmt.Sprint((*Credential)(nil)); got != "wire.Credential(nil)" {
		t.Error(got)
	}
	if _, err := new(Credential).Open(new(Envelope), nil); !errors.Is(err, ErrMode) {
		t.Errorf("a zero credential opens a zero envelope: %v", err)
	}
	if _, err := NewCredential(apikey.Key{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("zero key: %v", err)
	}
}
