package wire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/apikey"
)

// exchange is one of everything in a mode: what the hot paths of a client and a server work on.
type exchange struct {
	c        *Credential
	s        *Sealer
	request  Request
	obs      []Observation
	answer   Answer
	asked    RequestView
	scratch  Scratch
	opened   Scratch
	buffer   []byte
	requestD []byte // datagrams
	answerD  []byte
	reportD  []byte
}

// newExchange has a guard and two resources asked for, answered and reported on in a layout.
func newExchange(tb testing.TB, auth apikey.Auth, l Layout) *exchange {
	tb.Helper()
	x := &exchange{
		c:       testCredential(tb, auth, 1),
		s:       testSealer(tb, 1),
		request: Request{l, 60, someGuards(1), someResources(2), "api"},
		obs:     make([]Observation, 2),
		answer:  Answer{[]uint32{17}, []uint32{1, 2}, []uint16{0, 0}},
		buffer:  make([]byte, 0, BufferSize),
	}
	build := func(d []byte, err error) []byte {
		if err != nil {
			tb.Fatal(err)
		}
		return slices.Clone(d)
	}
	x.requestD = build(x.c.AppendRequest(x.buffer, x.s, &testHeader, &x.request))
	x.reportD = build(x.c.AppendReport(x.buffer, x.s, &testHeader, l, x.obs))
	pdu := x.open(tb, x.requestD)
	if err := ParseRequest(pdu, &x.asked); err != nil {
		tb.Fatal(err)
	}
	x.answerD = build(x.c.AppendResponse(x.buffer, x.s, &testHeader, &x.asked, &x.answer))
	return x
}

// open leaves the PDU in a scratch of its own, so that views of it stay valid.
func (x *exchange) open(tb testing.TB, d []byte) []byte {
	tb.Helper()
	var e Envelope
	if err := ParseEnvelope(d, &e); err != nil {
		tb.Fatal(err)
	}
	pdu, err := x.c.Open(&e, &x.opened)
	if err != nil {
		tb.Fatal(err)
	}
	return pdu
}

// read is a datagram's whole way in; it returns the first error.
func (x *exchange) read(d []byte) error {
	var e Envelope
	if err := ParseEnvelope(d, &e); err != nil {
		return err
	}
	pdu, err := x.c.Open(&e, &x.scratch)
	if err != nil {
		return err
	}
	kind, err := PDUKind(pdu)
	if err != nil {
		return err
	}
	switch kind {
	case KindRequest:
		var v RequestView
		if err := ParseRequest(pdu, &v); err != nil {
			return err
		}
		return walk(&v.blocks, v.Label(), v.Rest(), v.PDU(), v.Trailing())
	case KindResponse:
		var v ResponseView
		if err := ParseResponse(pdu, x.request.Layout, &v); err != nil {
			return err
		}
		return walk(&v.blocks, v.Rest(), v.PDU(), v.Trailing())
	}
	var v ReportView
	if err := ParseReport(pdu, &v); err != nil {
		return err
	}
	for i := range v.Len() {
		sink += v.At(i).Latency
	}
	return nil
}

var sink uint32

func walk(b *blocks, views ...[]byte) error {
	for i := range b.Guards() {
		sink += b.Guard(i).Latency
	}
	for i := range b.Resources() {
		sink += b.Resource(i).Rate
	}
	for _, v := range views {
		sink += uint32(len(v))
	}
	return nil
}

func noAllocations(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations", name, n)
	}
}

func TestNothingAllocates(t *testing.T) {
	for _, auth := range modes {
		for _, l := range []Layout{Layout1, Layout2} {
			t.Run(fmt.Sprintf("%v/%v", auth, l), func(t *testing.T) {
				x := newExchange(t, auth, l)
				for name, d := range map[string][]byte{"request": x.requestD, "response": x.answerD, "report": x.reportD} {
					noAllocations(t, "read a "+name, func() {
						if err := x.read(d); err != nil {
							t.Fatal(err)
						}
					})
				}
				for name, build := range map[string]func() ([]byte, error){
					"request":  func() ([]byte, error) { return x.c.AppendRequest(x.buffer, x.s, &testHeader, &x.request) },
					"report":   func() ([]byte, error) { return x.c.AppendReport(x.buffer, x.s, &testHeader, l, x.obs) },
					"response": func() ([]byte, error) { return x.c.AppendResponse(x.buffer, x.s, &testHeader, &x.asked, &x.answer) },
				} {
					noAllocations(t, "build a "+name, func() {
						if d, err := build(); err != nil || len(d) == 0 {
							t.Fatal(err)
						}
					})
				}
			})
		}
	}
}

// Every way in which a datagram is refused, by the error that refuses it: all of the package's
// errors of reading must come up, and none may allocate.
func TestNoRefusalAllocates(t *testing.T) {
	seen := map[error]bool{}
	refuse := func(name string, f func() error) {
		t.Helper()
		err := f()
		if err == nil {
			t.Errorf("%s: not refused", name)
		}
		seen[err] = true
		noAllocations(t, name, func() {
			if f() != err { //nolint:errorlint // The very same value must come back.
				t.Fatal("another error the second time")
			}
		})
	}
	for _, auth := range modes {
		x := newExchange(t, auth, Layout2)
		other := newExchange(t, auth%3+1, Layout2)
		for _, d := range [][]byte{x.requestD, x.answerD, x.reportD} {
			for n := range d {
				refuse(fmt.Sprintf("%v, %d bytes of %d", auth, n, len(d)), func() error { return x.read(d[:n]) })
			}
		}
		refuse("another mode", func() error { return x.read(other.requestD) })
		for i, c := range layoutTraps() {
			if c.want == 0 {
				d := sealRaw(x.c, []byte("twelve bytes"), rawHeader(40), c.pdu())
				refuse(fmt.Sprintf("trap %d", i), func() error { return x.read(d) })
			}
		}
		long := make([]byte, MaxDatagram+1)
		refuse("too long", func() error { return x.read(long) })
		unknown := sealRaw(x.c, []byte("twelve bytes"), rawHeader(40), make([]byte, 20))
		refuse("unknown PDU", func() error { return x.read(unknown) })
		badReport := sealRaw(x.c, []byte("twelve bytes"), rawHeader(40), []byte{0x4c, 0x52, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9})
		refuse("report body", func() error { return x.read(badReport) })
		badSize := sealRaw(x.c, []byte("twelve bytes"), rawHeader(40), []byte{0x4c, 0x52, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9})
		refuse("PDU size", func() error { return x.read(badSize) })
		for _, at := range []int{0, 2, 40, 42} {
			d := slices.Clone(x.requestD)
			d[at] ^= 0xff
			refuse(fmt.Sprintf("%v, byte %d changed", auth, at), func() error { return x.read(d) })
		}
	}
	report := newExchange(t, apikey.AuthNone, Layout2).reportD[44:]
	refuse("another kind", func() error { return ParseRequest(report, new(RequestView)) })
	refuse("no layout", func() error { return ParseResponse(report, 0, new(ResponseView)) })
	for _, want := range []error{
		ErrMode, ErrAuth, errDatagramLong, errHeaderCut, errHeaderType, errHeaderSize, errAuthCut, errAuthType, errAuthSize,
		errPDUCut, errPDUUnknown, errPDUKind, errPDUSize, errBody, errReportBody, errLabel, errAskLayout,
	} {
		if !seen[want] {
			t.Errorf("never refused with %q", want)
		}
	}
}

func TestNoFailedBuildAllocates(t *testing.T) {
	x := newExchange(t, apikey.AuthAES, Layout2)
	bad := x.request
	bad.DedupTTL = 0
	large := x.request
	large.Resources = someResources(42)
	for name, build := range map[string]func() error{
		"no TTL":    func() error { _, err := x.c.AppendRequest(x.buffer, x.s, &testHeader, &bad); return err },
		"too large": func() error { _, err := x.c.AppendRequest(x.buffer, x.s, &testHeader, &large); return err },
		"no sealer": func() error { _, err := x.c.AppendRequest(x.buffer, nil, &testHeader, &x.request); return err },
		"no layout": func() error { _, err := x.c.AppendReport(x.buffer, x.s, &testHeader, 0, x.obs); return err },
		"no answer": func() error {
			_, err := x.c.AppendResponse(x.buffer, x.s, &testHeader, &x.asked, &Answer{})
			return err
		},
	} {
		noAllocations(t, name, func() {
			if build() == nil {
				t.Fatal("built")
			}
		})
	}
}
