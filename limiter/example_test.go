package limiter_test

import (
	"fmt"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// asked is a request as a server has it after opening a datagram.
func asked(q wire.Request) wire.RequestView {
	key, err := apikey.New(apikey.AuthNone, 7, apikey.DefaultQuotas(), nil)
	if err != nil {
		panic(err)
	}
	credential, err := wire.NewCredential(key)
	if err != nil {
		panic(err)
	}
	datagram, err := credential.AppendRequest(nil, nil, &wire.Header{}, &q)
	if err != nil {
		panic(err)
	}
	var envelope wire.Envelope
	if err := wire.ParseEnvelope(datagram, &envelope); err != nil {
		panic(err)
	}
	pdu, err := credential.Open(&envelope, nil)
	if err != nil {
		panic(err)
	}
	var v wire.RequestView
	if err := wire.ParseRequest(pdu, &v); err != nil {
		panic(err)
	}
	return v
}

func ExampleEngine_Decide() {
	now := limiter.Time{Mono: 0, Wall: 1_800_000_000_000}
	engine, err := limiter.New(limiter.Config{
		RateBuckets: 65536, LatencyServices: 1024, LatencyBufferSize: 32,
		DedupTTLMax: 300, WindowMax: 1<<32 - 1,
		Seed:  [16]byte{}, // a real one is drawn from crypto/rand
		Start: now.Wall - 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := asked(wire.Request{
		Layout: wire.Layout2, DedupTTL: 60,
		Resources: []wire.Resource{{Bucket: ident.Bucket("checkout", 1000, 100), Window: 1000, Rate: 100, Tokens: 60}},
	})
	var answer wire.Answer
	for id := range byte(3) {
		header := wire.Header{UniqueID: wire.UniqueID{id}, Timestamp: now.Wall}
		verdict := engine.Decide(now, &header, &request, &answer)
		fmt.Println(verdict, answer.Rates, answer.Deficits)
	}
	repeat := wire.Header{UniqueID: wire.UniqueID{0}, Timestamp: now.Wall}
	fmt.Println(engine.Decide(now, &repeat, &request, &answer), answer.Rates, answer.Deficits)

	now.Mono += 1_000_000_000 // a window later
	now.Wall += 1000
	later := wire.Header{UniqueID: wire.UniqueID{9}, Timestamp: now.Wall}
	fmt.Println(engine.Decide(now, &later, &request, &answer), answer.Rates, answer.Deficits)
	// Output:
	// granted [60] [0]
	// rejected [60] [20]
	// rejected [60] [20]
	// repeat_granted [60] [0]
	// granted [60] [0]
}

func ExampleConfig_WorstCase() {
	c := limiter.Config{RateBuckets: 65536, LatencyServices: 1024, LatencyBufferSize: 32, DedupTTLMax: 300, WindowMax: 1<<32 - 1}
	fmt.Println(c.WorstCase()>>20, "MiB")
	// Output:
	// 230 MiB
}
