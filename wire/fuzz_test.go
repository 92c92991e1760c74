package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/internal/vectors"
)

func parseRequestTarget(tb testing.TB) *storm.Target {
	target := storm.New("FuzzParseRequest", new(checker).requestPDU)
	target.Aim(storm.PDU)
	for _, v := range vectors.Requests(tb) {
		target.Add([]byte(v.PDU))
	}
	for _, v := range vectors.Traps(tb) {
		target.Add([]byte(v.PDU))
	}
	for _, c := range layoutTraps() {
		target.Add(c.pdu())
	}
	return target
}

func FuzzParseRequest(f *testing.F)      { parseRequestTarget(f).Fuzz(f) }
func TestStormParseRequest(t *testing.T) { parseRequestTarget(t).Storm(t) }

func parseResponseTarget(tb testing.TB) *storm.Target {
	c := new(checker)
	target := storm.New2("FuzzParseResponse", func(t testing.TB, pdu []byte, l uint8) { c.responsePDU(t, pdu, Layout(l)) })
	target.Aim(storm.PDU)
	for _, v := range vectors.Responses(tb) {
		target.Add([]byte(v.PDU), uint8(v.Layout))
	}
	return target
}

func FuzzParseResponse(f *testing.F)      { parseResponseTarget(f).Fuzz(f) }
func TestStormParseResponse(t *testing.T) { parseResponseTarget(t).Storm(t) }

func parseReportTarget(tb testing.TB) *storm.Target {
	target := storm.New("FuzzParseReport", new(checker).reportPDU)
	target.Aim(storm.PDU)
	for _, v := range vectors.Reports(tb) {
		target.Add([]byte(v.PDU))
	}
	return target
}

func FuzzParseReport(f *testing.F)      { parseReportTarget(f).Fuzz(f) }
func TestStormParseReport(t *testing.T) { parseReportTarget(t).Storm(t) }

// envelopeTarget takes whole datagrams through every key of the vectors, and the same content once
// more sealed by ourselves in every mode, with one bit changed.
func envelopeTarget(tb testing.TB) *storm.Target {
	credentials := vectorCredentials(tb)
	var check checker
	var kept []byte
	var scratch Scratch
	target := storm.New2("FuzzEnvelope", func(t testing.TB, datagram []byte, bit uint16) {
		kept = append(kept[:0], datagram...)
		var e Envelope
		if err := ParseEnvelope(datagram, &e); err != nil {
			if !errors.Is(err, ErrMalformed) || e.Datagram() != nil {
				t.Fatalf("%v, and an envelope of %d bytes", err, len(e.Datagram()))
			}
			return
		}
		for _, c := range credentials {
			pdu, err := c.Open(&e, &scratch)
			if (e.Auth == c.Auth()) == errors.Is(err, ErrMode) || err != nil && pdu != nil {
				t.Fatalf("a datagram in mode %v, a key in mode %v: %v", e.Auth, c.Auth(), err)
			}
			if err != nil {
				continue
			}
			check.anyPDU(t, pdu)
			check.reseal(t, &e, pdu, bit)
		}
		if !bytes.Equal(datagram, kept) {
			t.Fatal("the datagram was changed")
		}
	})
	target.Aim(storm.Datagram)
	for _, v := range vectors.Requests(tb) {
		target.Add([]byte(v.Datagram), uint16(0))
	}
	for _, v := range vectors.Reports(tb) {
		target.Add([]byte(v.Datagram), uint16(len(v.Datagram)*8-1))
	}
	for _, v := range vectors.Responses(tb) {
		target.Add([]byte(v.Response), uint16(300))
	}
	return target
}

func FuzzEnvelope(f *testing.F)      { envelopeTarget(f).Fuzz(f) }
func TestStormEnvelope(t *testing.T) { envelopeTarget(t).Storm(t) }

// checker checks what parsers make of bytes. It is used again and again, so that a check costs
// little; what it holds is space.
type checker struct {
	scratch      Scratch
	guards       []Guard
	resources    []Resource
	observations []Observation
	answer       Answer
	datagram     []byte
	reply        []byte
}

// open takes a datagram apart and opens it. The PDU is valid until the next call.
func (k *checker) open(c *Credential, datagram []byte) (Envelope, []byte, error) {
	var e Envelope
	if err := ParseEnvelope(datagram, &e); err != nil {
		return e, nil, err
	}
	pdu, err := c.Open(&e, &k.scratch)
	return e, pdu, err
}

// reseal seals an opened datagram's content in every mode, opens it again, and refuses it with a bit
// changed where the mode authenticates that bit.
func (k *checker) reseal(t testing.TB, e *Envelope, pdu []byte, bit uint16) {
	header := e.Datagram()[:e.HeaderSize()]
	for _, auth := range modes {
		c := propertyCredentials[auth]
		k.datagram = appendRaw(k.datagram[:0], c, []byte("twelve bytes"), header, pdu)
		d := k.datagram
		again, got, err := k.open(c, d)
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
		_, _, err = k.open(c, d)
		if auth == apikey.AuthAES && err == nil {
			t.Fatalf("bit %d is not authenticated", at)
		}
		if cookie := len(header) + 4; auth == apikey.AuthCookie && at/8 >= cookie && at/8 < cookie+32 && !errors.Is(err, ErrAuth) {
			t.Fatalf("bit %d of the datagram, in the cookie: %v", at, err)
		}
	}
}

// anyPDU reads a PDU as what it says it is, and as everything else, which must be refused.
func (k *checker) anyPDU(t testing.TB, pdu []byte) {
	kind, err := PDUKind(pdu)
	if err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatal(err)
	}
	for _, read := range [...]struct {
		as  Kind
		err error
	}{
		{KindRequest, ParseRequest(pdu, new(RequestView))},
		{KindResponse, ParseResponse(pdu, Layout2, new(ResponseView))},
		{KindReport, ParseReport(pdu, new(ReportView))},
	} {
		if read.as != kind && !errors.Is(read.err, ErrMalformed) {
			t.Fatalf("a %v read as a %v: %v", kind, read.as, read.err)
		}
	}
	k.requestPDU(t, pdu)
	k.responsePDU(t, pdu, Layout1)
	k.responsePDU(t, pdu, Layout2)
	k.reportPDU(t, pdu)
}

// whole checks that a PDU and what trails it are the input.
func whole(t testing.TB, f *frame, input []byte) {
	n := len(f.PDU())
	if n+len(f.Trailing()) != len(input) || !bytes.Equal(f.PDU(), input[:n]) || !bytes.Equal(f.Trailing(), input[n:]) {
		t.Fatal("PDU and what trails it are not the input")
	}
}

func (k *checker) requestPDU(t testing.TB, pdu []byte) {
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
	whole(t, &v.frame, pdu)
	k.guards, k.resources = k.guards[:0], k.resources[:0]
	for i := range v.Guards() {
		k.guards = append(k.guards, v.Guard(i))
	}
	for i := range v.Resources() {
		k.resources = append(k.resources, v.Resource(i))
	}
	r := Request{Layout: v.Layout, DedupTTL: v.DedupTTL, Guards: k.guards, Resources: k.resources, Label: string(v.Label())}
	if r.DedupTTL == 0 {
		return
	}
	c := propertyCredentials[apikey.AuthNone]
	d, err := c.AppendRequest(k.datagram[:0], nil, &testHeader, &r)
	if size := RequestSize(apikey.AuthNone, r.Layout, len(r.Guards), len(r.Resources), len(r.Label)); size > MaxDatagram {
		if !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	k.datagram = d
	// What we would write ourselves comes out byte for byte.
	k.reply = appendLabel(k.reply[:0], r.Label)
	rest := k.reply
	if v.blank() && bytes.Equal(v.Rest(), rest) && !bytes.Equal(d[44:], v.PDU()) {
		t.Fatalf("rebuilt\n%x, want\n%x", d[44:], v.PDU())
	}
}

func (k *checker) responsePDU(t testing.TB, pdu []byte, l Layout) {
	var v ResponseView
	if err := ParseResponse(pdu, l, &v); err != nil {
		if !errors.Is(err, ErrMalformed) || v.PDU() != nil || v.Guards()+v.Resources() != 0 {
			t.Fatalf("%v, and a view of %d bytes", err, len(v.PDU()))
		}
		return
	}
	whole(t, &v.frame, pdu)
	// Ask for what it answers, and answer with its numbers.
	q := Request{Layout: l, DedupTTL: 1, Guards: k.guards[:0], Resources: k.resources[:0]}
	a := &k.answer
	a.Latencies, a.Rates, a.Deficits = a.Latencies[:0], a.Rates[:0], a.Deficits[:0]
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
	k.guards, k.resources = q.Guards, q.Resources
	c := propertyCredentials[apikey.AuthNone]
	d, err := c.AppendRequest(k.datagram[:0], nil, &testHeader, &q)
	if errors.Is(err, ErrTooLarge) {
		return
	}
	var view RequestView
	if err == nil {
		k.datagram = d
		err = ParseRequest(d[44:], &view)
	}
	if err == nil && len(q.Guards) > 0 && view.Layout != l {
		return // a layout 1 request that reads as layout 2
	}
	if err == nil {
		d, err = c.AppendResponse(k.reply[:0], nil, &testHeader, &view, a)
	}
	if err != nil {
		t.Fatal(err)
	}
	k.reply = d
	if !padded && v.Word() == 0 && len(v.Rest()) == 0 && !bytes.Equal(d[44:], v.PDU()) {
		t.Fatalf("rebuilt\n%x, want\n%x", d[44:], v.PDU())
	}
}

func (k *checker) reportPDU(t testing.TB, pdu []byte) {
	var v ReportView
	if err := ParseReport(pdu, &v); err != nil {
		if !errors.Is(err, ErrMalformed) || v.Layout != 0 || v.PDU() != nil || v.Len() != 0 {
			t.Fatalf("%v, and a view of %v", err, v.Layout)
		}
		return
	}
	whole(t, &v.frame, pdu)
	if want := v.Len() * [...]int{Layout1: 36, Layout2: 32}[v.Layout]; len(v.PDU()) != 12+want {
		t.Fatalf("%d observations of %v in %d bytes", v.Len(), v.Layout, len(v.PDU()))
	}
	obs := k.observations[:0]
	for i := range v.Len() {
		obs = append(obs, v.At(i))
	}
	k.observations = obs
	c := propertyCredentials[apikey.AuthNone]
	d, err := c.AppendReport(k.datagram[:0], nil, &testHeader, v.Layout, obs)
	if errors.Is(err, ErrTooLarge) && len(obs) > MaxObservations(apikey.AuthNone, v.Layout) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	k.datagram = d
	reserved := pdu[10]|pdu[11] != 0
	if v.Word() == 0 && !reserved && !bytes.Equal(d[44:], v.PDU()) {
		t.Fatalf("rebuilt\n%x, want\n%x", d[44:], v.PDU())
	}
}
