package wire

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/vectors"
)

func FuzzParseRequest(f *testing.F) {
	for _, v := range vectors.Requests(f) {
		f.Add([]byte(v.PDU))
	}
	for _, v := range vectors.Traps(f) {
		f.Add([]byte(v.PDU))
	}
	for _, c := range layoutTraps() {
		f.Add(c.pdu())
	}
	f.Fuzz(checkRequestPDU)
}

func FuzzParseResponse(f *testing.F) {
	for _, v := range vectors.Responses(f) {
		f.Add([]byte(v.PDU), uint8(v.Layout))
	}
	f.Fuzz(func(t *testing.T, pdu []byte, l uint8) { checkResponsePDU(t, pdu, Layout(l)) })
}

func FuzzParseReport(f *testing.F) {
	for _, v := range vectors.Reports(f) {
		f.Add([]byte(v.PDU))
	}
	f.Fuzz(checkReportPDU)
}

// FuzzEnvelope takes whole datagrams through every key of the vectors, and the same content once
// more sealed by ourselves in every mode, with one bit changed.
func FuzzEnvelope(f *testing.F) {
	for _, v := range vectors.Requests(f) {
		f.Add([]byte(v.Datagram), uint16(0))
	}
	for _, v := range vectors.Reports(f) {
		f.Add([]byte(v.Datagram), uint16(len(v.Datagram)*8-1))
	}
	for _, v := range vectors.Responses(f) {
		f.Add([]byte(v.Response), uint16(300))
	}
	credentials := vectorCredentials(f)
	f.Fuzz(func(t *testing.T, datagram []byte, bit uint16) {
		kept := bytes.Clone(datagram)
		var e Envelope
		if err := ParseEnvelope(datagram, &e); err != nil {
			if !errors.Is(err, ErrMalformed) || e.Datagram() != nil {
				t.Fatalf("%v, and an envelope of %d bytes", err, len(e.Datagram()))
			}
			return
		}
		var scratch Scratch
		for _, c := range credentials {
			pdu, err := c.Open(&e, &scratch)
			if (e.Auth == c.Auth()) == errors.Is(err, ErrMode) || err != nil && pdu != nil {
				t.Fatalf("a datagram in mode %v, a key in mode %v: %v", e.Auth, c.Auth(), err)
			}
			if err != nil {
				continue
			}
			checkAnyPDU(t, pdu)
			checkReseal(t, &e, pdu, bit)
		}
		if !bytes.Equal(datagram, kept) {
			t.Fatal("the datagram was changed")
		}
	})
}

// checkReseal seals an opened datagram's content in every mode, opens it again, and refuses it with
// a bit changed where the mode authenticates that bit.
func checkReseal(t *testing.T, e *Envelope, pdu []byte, bit uint16) {
	header := e.Datagram()[:e.HeaderSize()]
	for auth, c := range propertyCredentials {
		d := sealRaw(c, []byte("twelve bytes"), header, pdu)
		again, got, err := open(c, d)
		if len(d) > MaxDatagram {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%d bytes: %v", len(d), err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, pdu) || again.Header != e.Header {
			t.Fatalf("%v: %v", auth, err)
		}
		at := int(bit) % (len(d) * 8)
		d[at/8] ^= 1 << (at % 8)
		_, _, err = open(c, d)
		if auth == apikey.AuthAES && err == nil {
			t.Fatalf("bit %d is not authenticated", at)
		}
		if cookie := len(header) + 4; auth == apikey.AuthCookie && at/8 >= cookie && at/8 < cookie+32 && !errors.Is(err, ErrAuth) {
			t.Fatalf("bit %d of the datagram, in the cookie: %v", at, err)
		}
	}
}

// checkAnyPDU reads a PDU as what it says it is, and as everything else, which must be refused.
func checkAnyPDU(t *testing.T, pdu []byte) {
	kind, err := PDUKind(pdu)
	if err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatal(err)
	}
	for as, err := range map[Kind]error{
		KindRequest:  ParseRequest(pdu, new(RequestView)),
		KindResponse: ParseResponse(pdu, Layout2, new(ResponseView)),
		KindReport:   ParseReport(pdu, new(ReportView)),
	} {
		if as != kind && !errors.Is(err, ErrMalformed) {
			t.Fatalf("a %v read as a %v: %v", kind, as, err)
		}
	}
	checkRequestPDU(t, pdu)
	checkResponsePDU(t, pdu, Layout1)
	checkResponsePDU(t, pdu, Layout2)
	checkReportPDU(t, pdu)
}

func checkRequestPDU(t *testing.T, pdu []byte) {
	var v RequestView
	if err := ParseRequest(pdu, &v); err != nil {
		if !errors.Is(err, ErrMalformed) || v.Layout != 0 || v.PDU() != nil || v.Guards()+v.Resources() != 0 {
			t.Fatalf("%v, and a view of %v", err, v.Layout)
		}
		return
	}
	if rule := ruleLayout(v.PDU()[pduSize:]); rule != v.Layout {
		t.Fatalf("%v, the rule says %v", v.Layout, rule)
	}
	if !bytes.Equal(slices.Concat(v.PDU(), v.Trailing()), pdu) {
		t.Fatal("PDU and what trails it are not the input")
	}
	r := requestOf(&v)
	if r.DedupTTL == 0 {
		return
	}
	c := propertyCredentials[apikey.AuthNone]
	d, err := c.AppendRequest(nil, nil, &testHeader, &r)
	if size := RequestSize(apikey.AuthNone, r.Layout, len(r.Guards), len(r.Resources), len(r.Label)); size > MaxDatagram {
		if !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	// What we would write ourselves comes out byte for byte.
	rest := appendLabel(nil, r.Label)
	if v.blank() && bytes.Equal(v.Rest(), rest) && !bytes.Equal(d[44:], v.PDU()) {
		t.Fatalf("rebuilt\n%x, want\n%x", d[44:], v.PDU())
	}
}

func checkResponsePDU(t *testing.T, pdu []byte, l Layout) {
	var v ResponseView
	if err := ParseResponse(pdu, l, &v); err != nil {
		if !errors.Is(err, ErrMalformed) || v.PDU() != nil || v.Guards()+v.Resources() != 0 {
			t.Fatalf("%v, and a view of %d bytes", err, len(v.PDU()))
		}
		return
	}
	if !bytes.Equal(slices.Concat(v.PDU(), v.Trailing()), pdu) {
		t.Fatal("PDU and what trails it are not the input")
	}
	// Ask for what it answers, and answer with its numbers.
	q := Request{Layout: l, DedupTTL: 1}
	var a Answer
	padded := false
	for i := range v.Guards() {
		q.Guards = append(q.Guards, v.Guard(i))
		a.Latencies = append(a.Latencies, v.Guard(i).Latency)
	}
	for i := range v.Resources() {
		r := v.Resource(i)
		q.Resources = append(q.Resources, r)
		a.Rates = append(a.Rates, r.Rate)
		a.Deficits = append(a.Deficits, r.Tokens)
		padded = padded || v.resources[i*28+26]|v.resources[i*28+27] != 0
	}
	c := propertyCredentials[apikey.AuthNone]
	d, err := c.AppendRequest(nil, nil, &testHeader, &q)
	if errors.Is(err, ErrTooLarge) {
		return
	}
	var view RequestView
	if err == nil {
		err = ParseRequest(d[44:], &view)
	}
	if err == nil && len(q.Guards) > 0 && view.Layout != l {
		return // a layout 1 request that reads as layout 2
	}
	if err == nil {
		d, err = c.AppendResponse(nil, nil, &testHeader, &view, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !padded && v.Word() == 0 && len(v.Rest()) == 0 && !bytes.Equal(d[44:], v.PDU()) {
		t.Fatalf("rebuilt\n%x, want\n%x", d[44:], v.PDU())
	}
}

func checkReportPDU(t *testing.T, pdu []byte) {
	var v ReportView
	if err := ParseReport(pdu, &v); err != nil {
		if !errors.Is(err, ErrMalformed) || v.Layout != 0 || v.PDU() != nil || v.Len() != 0 {
			t.Fatalf("%v, and a view of %v", err, v.Layout)
		}
		return
	}
	if !bytes.Equal(slices.Concat(v.PDU(), v.Trailing()), pdu) {
		t.Fatal("PDU and what trails it are not the input")
	}
	if want := v.Len() * map[Layout]int{Layout1: 36, Layout2: 32}[v.Layout]; len(v.PDU()) != 12+want {
		t.Fatalf("%d observations of %v in %d bytes", v.Len(), v.Layout, len(v.PDU()))
	}
	var obs []Observation
	for i := range v.Len() {
		obs = append(obs, v.At(i))
	}
	c := propertyCredentials[apikey.AuthNone]
	d, err := c.AppendReport(nil, nil, &testHeader, v.Layout, obs)
	if errors.Is(err, ErrTooLarge) && len(obs) > MaxObservations(apikey.AuthNone, v.Layout) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	reserved := pdu[10]|pdu[11] != 0
	if v.Word() == 0 && !reserved && !bytes.Equal(d[44:], v.PDU()) {
		t.Fatalf("rebuilt\n%x, want\n%x", d[44:], v.PDU())
	}
}
