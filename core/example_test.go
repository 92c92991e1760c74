package core_test

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// One request from Submit to its decision, with a pretended network of two
// servers of which only the younger one answers: its answer is taken when the
// oldest has been waited for long enough.
func Example() {
	key, err := apikey.Parse("rl-none1qyyqwps9qspsyq2sk8e0sfdp3ys")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := core.New(core.Config{Key: key, Entropy: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := core.Time{Wall: 1_796_000_000_000}
	err = c.SetMembership(now, []core.Server{
		{ID: 10, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.10:29292")}},
		{ID: 20, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.20:29292")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	checkout := wire.Resource{Bucket: ident.Bucket("checkout", 1000, 100), Window: 1000, Rate: 100, Tokens: 1}
	if _, err := c.Submit(now, &core.Request{Resources: []wire.Resource{checkout}}); err != nil {
		fmt.Println(err)
		return
	}

	var answer []byte
	exchange(c, now, &answer)

	now.Mono += 3 * time.Millisecond
	fmt.Println("answer:", c.HandleDatagram(now, 1, answer))
	exchange(c, now, nil)

	at, _ := c.Deadline()
	now.Mono = at
	c.HandleTimer(now)
	exchange(c, now, nil)

	// Output:
	// first to 192.0.2.10:29292 at 0s
	// first to 192.0.2.20:29292 at 0s
	// answer: counted
	// completion delivery to 192.0.2.10:29292 at 20ms
	// granted by 20 after 20ms
}

// exchange does what the core wants done, and lets server 20 write its answer.
func exchange(c *core.Core, now core.Time, answer *[]byte) {
	var out core.Send
	for c.PollSend(now, &out) {
		fmt.Printf("%v to %v at %v\n", out.Kind, out.To, now.Mono)
		if answer != nil && out.Server == 20 {
			*answer = grant(out.Payload, out.Server)
		}
	}
	var ev core.Event
	for c.PollEvent(&ev) {
		if ev.Kind == core.EventCompleted {
			fmt.Printf("%v by %v after %v\n", ev.Completion.Outcome, ev.Completion.Server, ev.Completion.Elapsed)
		}
	}
}

// grant is an r-server that grants everything.
func grant(datagram []byte, server ident.ServerID) []byte {
	key, err := apikey.Parse("rl-none1qyyqwps9qspsyq2sk8e0sfdp3ys")
	if err != nil {
		panic(err)
	}
	credential, err := wire.NewCredential(key)
	if err != nil {
		panic(err)
	}
	var e wire.Envelope
	var v wire.RequestView
	if err := wire.ParseEnvelope(datagram, &e); err != nil {
		panic(err)
	}
	pdu, err := credential.Open(&e, nil)
	if err != nil {
		panic(err)
	}
	if err := wire.ParseRequest(pdu, &v); err != nil {
		panic(err)
	}
	h := wire.Header{KeyID: uint64(server), UniqueID: e.Header.UniqueID, Timestamp: e.Header.Timestamp, Steering: 1}
	b, err := credential.AppendResponse(nil, nil, &h, &v, &wire.Answer{Rates: []uint32{1}, Deficits: []uint16{0}})
	if err != nil {
		panic(err)
	}
	return b
}
