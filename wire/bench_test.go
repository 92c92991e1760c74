package wire

import (
	"testing"

	"github.com/weirhq/weir/apikey"
)

// benchmarkModes runs f for a guard and two resources in layout 2, in each mode.
func benchmarkModes(b *testing.B, f func(*exchange) error) {
	b.Helper()
	for _, auth := range modes {
		b.Run(auth.String(), func(b *testing.B) {
			x := newExchange(b, auth, Layout2)
			b.ReportAllocs()
			for b.Loop() {
				if err := f(x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a server does before it knows the key.
func BenchmarkParseEnvelope(b *testing.B) {
	benchmarkModes(b, func(x *exchange) error {
		var e Envelope
		return ParseEnvelope(x.requestD, &e)
	})
}

// Envelope, authentication, PDU, every block.
func BenchmarkReadRequest(b *testing.B) {
	benchmarkModes(b, func(x *exchange) error { return x.read(x.requestD) })
}

func BenchmarkReadResponse(b *testing.B) {
	benchmarkModes(b, func(x *exchange) error { return x.read(x.answerD) })
}

func BenchmarkReadReport(b *testing.B) {
	benchmarkModes(b, func(x *exchange) error { return x.read(x.reportD) })
}

func BenchmarkAppendRequest(b *testing.B) {
	benchmarkModes(b, func(x *exchange) error {
		_, err := x.c.AppendRequest(x.buffer, x.s, &testHeader, &x.request)
		return err
	})
}

func BenchmarkAppendResponse(b *testing.B) {
	benchmarkModes(b, func(x *exchange) error {
		_, err := x.c.AppendResponse(x.buffer, x.s, &testHeader, &x.asked, &x.answer)
		return err
	})
}

func BenchmarkAppendReport(b *testing.B) {
	benchmarkModes(b, func(x *exchange) error {
		_, err := x.c.AppendReport(x.buffer, x.s, &testHeader, Layout2, x.obs)
		return err
	})
}

// A PDU alone: the layout that needs one look, the one that needs two, and the most blocks.
func BenchmarkParseRequest(b *testing.B) {
	for _, c := range []struct {
		name string
		pdu  []byte
	}{
		{"layout 2", newExchange(b, apikey.AuthNone, Layout2).requestD[44:]},
		{"layout 1", newExchange(b, apikey.AuthNone, Layout1).requestD[44:]},
		{"31 guards", craft(31, 0, make([]byte, 31*guardSize2))},
		{"1140 bytes of TLVs", craft(0, 0, make([]byte, 0), emptyTLVs(285))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var v RequestView
				if err := ParseRequest(c.pdu, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func emptyTLVs(n int) []byte {
	var b []byte
	for range n {
		b = append(b, 7, 0, 4, 0)
	}
	return b
}
