package wire_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// entropy stands for crypto/rand.Reader, so that the examples' output is the same every time.
func entropy() *bytes.Reader { return bytes.NewReader(make([]byte, 64)) }

func credential(auth apikey.Auth) *wire.Credential {
	key, err := apikey.New(auth, 7, apikey.DefaultQuotas(), entropy())
	if err != nil {
		panic(err)
	}
	c, err := wire.NewCredential(key)
	if err != nil {
		panic(err)
	}
	return c
}

// A client asks, a server reads the question and answers it, the client reads the answer.
func Example() {
	c := credential(apikey.AuthAES)
	client, err := wire.NewSealer(entropy()) // one per socket
	if err != nil {
		panic(err)
	}
	question, err := c.AppendRequest(nil, client,
		&wire.Header{UniqueID: wire.UniqueID{1}, Timestamp: 1796059766154},
		&wire.Request{
			Layout:    wire.Layout2,
			DedupTTL:  60,
			Resources: []wire.Resource{{Bucket: ident.Bucket("checkout", 1000, 100), Window: 1000, Rate: 100, Tokens: 5}},
		})
	if err != nil {
		panic(err)
	}

	// The server.
	var env wire.Envelope
	var scratch wire.Scratch
	if err := wire.ParseEnvelope(question, &env); err != nil {
		panic(err)
	}
	pdu, err := c.Open(&env, &scratch) // the key that env.Header.KeyID names
	if err != nil {
		panic(err)
	}
	var asked wire.RequestView
	if err := wire.ParseRequest(pdu, &asked); err != nil {
		panic(err)
	}
	fmt.Println("asked:", asked.Resource(0).Tokens, "tokens of", asked.Resource(0).Rate)
	server, err := wire.NewSealer(bytes.NewReader([]byte("others!!")))
	if err != nil {
		panic(err)
	}
	answer, err := c.AppendResponse(nil, server,
		&wire.Header{KeyID: 335544320000001, UniqueID: env.Header.UniqueID, Timestamp: 1796059766155, Steering: 1},
		&asked, &wire.Answer{Rates: []uint32{42}, Deficits: []uint16{0}})
	if err != nil {
		panic(err)
	}

	// The client.
	if err := wire.ParseEnvelope(answer, &env); err != nil {
		panic(err)
	}
	if pdu, err = c.Open(&env, &scratch); err != nil {
		panic(err)
	}
	var got wire.ResponseView
	if err := wire.ParseResponse(pdu, wire.Layout2, &got); err != nil {
		panic(err)
	}
	fmt.Println("answered by:", env.Header.KeyID)
	fmt.Println("actual rate:", got.Resource(0).Rate, "deficit:", got.Resource(0).Tokens)
	// Output:
	// asked: 5 tokens of 100
	// answered by: 335544320000001
	// actual rate: 42 deficit: 0
}

// A report is split by how much a datagram holds.
func ExampleMaxObservations() {
	fmt.Println(wire.MaxObservations(apikey.AuthAES, wire.Layout2), wire.MaxObservations(apikey.AuthAES, wire.Layout1))
	// Output: 34 31
}

// How long a request would be can be asked before it is built.
func ExampleRequestSize() {
	size := wire.RequestSize(apikey.AuthAES, wire.Layout2, 1, 2, len("api"))
	fmt.Println(size, "bytes, fits:", size <= wire.MaxDatagram)
	// Output: 188 bytes, fits: true
}

// Every refusal is of one of three classes; its text says more.
func ExampleParseEnvelope() {
	var env wire.Envelope
	err := wire.ParseEnvelope([]byte("GET / HTTP/1.1"), &env)
	fmt.Println(errors.Is(err, wire.ErrMalformed), err)
	// Output: true wire: malformed datagram: it does not begin with a tenant header
}

// A latency report, written and read.
func ExampleParseReport() {
	c := credential(apikey.AuthNone)
	took := wire.Observation{
		Tracker: ident.Tracker("inventory", 10000, 100, 5),
		TTL:     10000, MaxSamples: 100, MinSamples: 5,
		Latency: 18,
	}
	d, err := c.AppendReport(nil, nil, &wire.Header{}, wire.Layout2, []wire.Observation{took})
	if err != nil {
		panic(err)
	}
	var env wire.Envelope
	if err := wire.ParseEnvelope(d, &env); err != nil {
		panic(err)
	}
	pdu, err := c.Open(&env, nil) // none and cookie mode need no scratch
	if err != nil {
		panic(err)
	}
	var report wire.ReportView
	if err := wire.ParseReport(pdu, &report); err != nil {
		panic(err)
	}
	for i := range report.Len() {
		fmt.Println(report.Layout, report.At(i).Latency, "ms")
	}
	// Output: layout 2 18 ms
}

// What follows the blocks of a request is a run of TLVs.
func ExampleNextTLV() {
	rest := []byte{0x4d, 0x4c, 12, 0, 3, 0, 'a', 'p', 'i', 0, 0, 0, 0x99, 0x99, 5, 0, '?'}
	for len(rest) > 0 {
		typ, body, next, ok := wire.NextTLV(rest)
		if !ok {
			fmt.Println("malformed")
			return
		}
		fmt.Printf("%#x: %d bytes, label: %v\n", typ, len(body), typ == wire.TypeLabel)
		rest = next
	}
	// Output:
	// 0x4c4d: 8 bytes, label: true
	// 0x9999: 1 bytes, label: false
}
