package server

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

var allModes = []apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES}

// stream makes n datagrams of one client, each with an identity of its own.
func stream(c *client, n int, build func() []byte) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		binary.LittleEndian.PutUint64(c.header.UniqueID[:], uint64(i+1))
		list[i] = build()
	}
	return list
}

// From socket to socket nothing allocates: not a decision, not a repeat, not a report,
// not a drop; nor does steering.
func TestDatagramPathDoesNotAllocate(t *testing.T) {
	for _, auth := range allModes {
		for _, duty := range []uint32{dutyNone, dutyCount, dutyAsk} {
			t.Run(fmt.Sprintf("%v, duty %d", auth, duty), func(t *testing.T) { testAllocations(t, auth, duty) })
		}
	}
}

func testAllocations(t *testing.T, auth apikey.Auth, duty uint32) {
	const runs = 1000
	key := newKey(t, auth, 7)
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}, MaxRate: maxMaxRate})
	w.flows = newFlows()
	onDuty := func(from netip.AddrPort) {
		if duty == dutyNone {
			return
		}
		w.flows.count(clock.Now().Mono)
		if duty == dutyAsk {
			w.flows.feedback(clock.Now().Mono, from)
			w.flows.ask(clock.Now().Mono, 1, rand.New(rand.NewPCG(1, 1)))
		}
	}
	c := newClient(t, key)
	labeled := checkout(1)
	labeled.Label = "api/v1\n"
	requests := stream(c, 3*runs, func() []byte { return c.request(labeled) })
	reports := stream(c, 3*runs, func() []byte { return c.report(observation(5)) })
	stranger := c.request(labeled)
	stranger[4]++
	forged := c.request(labeled)
	forged[len(forged)-1]++
	forged[45]++ // the cookie, or the nonce
	stale := func() []byte { c.header.Timestamp = 1; return c.request(labeled) }()
	for _, path := range []struct {
		name string
		next func(i int) []byte
	}{
		{"requests", func(i int) []byte { return requests[i] }},
		{"reports", func(i int) []byte { return reports[i] }},
		{"repeats", func(int) []byte { return requests[0] }},
		{"strangers", func(int) []byte { return stranger }},
		{"forgeries", func(int) []byte { return forged }},
		{"stale", func(int) []byte { return stale }},
		{"noise", func(int) []byte { return requests[0][:50] }},
	} {
		onDuty(peer)
		i := 0
		step := func() {
			w.ask(path.next(i))
			i++
		}
		for range runs { // tables grow to their size, a page at a time
			step()
		}
		if n := testing.AllocsPerRun(runs, step); n != 0 {
			t.Errorf("%s: %v allocations per datagram", path.name, n)
		}
	}
	if asked := w.flows.asked.Load(); asked > 0 != (duty == dutyAsk) {
		t.Errorf("%d are asked to move", asked)
	}
}

// The same over real sockets: a datagram goes to the worker's and its answer comes back.
func TestSocketToSocketDoesNotAllocate(t *testing.T) {
	const runs = 500
	for _, auth := range allModes {
		key := newKey(t, auth, 7)
		w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
		at := netip.MustParseAddrPort("127.0.0.1:0")
		conn, err := udp.Host().Listen(at, udp.Options{AskedAddr: true})
		if err != nil {
			t.Fatal(err)
		}
		local, err := udp.Host().Listen(at, udp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var ended sync.WaitGroup
		w.conn = conn
		ended.Go(func() { w.run(t.Context()) })

		c := newClient(t, key)
		requests := stream(c, 2*runs+10, func() []byte { return c.request(checkout(1)) })
		out := []udp.Datagram{{Peer: conn.LocalAddr()}}
		in := []udp.Datagram{{Buf: make([]byte, wire.MaxDatagram)}}
		i := 0
		step := func() {
			out[0].Buf, out[0].N = requests[i], len(requests[i])
			i++
			if _, err := local.Write(out); err != nil {
				t.Fatal(err)
			}
			if _, err := local.Read(in); err != nil {
				t.Fatal(err)
			}
		}
		for range runs {
			step()
		}
		if n := testing.AllocsPerRun(runs, step); n != 0 {
			t.Errorf("%v: %v allocations per question and answer", auth, n)
		}
		if r := c.open(in[0].Payload(), wire.Layout2); r.header.KeyID != uint64(testServer) {
			t.Errorf("%v: answered by %d", auth, r.header.KeyID)
		}
		conn.Close()
		local.Close()
		ended.Wait()
	}
}

// BenchmarkDatagram is the path of one datagram in each mode: open, parse, decide,
// seal. Each asks for a token of one bucket and carries a guard.
func BenchmarkDatagram(b *testing.B) {
	for _, auth := range allModes {
		b.Run(auth.String(), func(b *testing.B) {
			key := newKey(b, auth, 7)
			clock := newFakeClock()
			rules := workerRules()
			rules.identities = 1 << 16
			w := newWorker(b, clock, rules, Tenant{Keys: []apikey.Key{key}})
			c := newClient(b, key)
			const known = 1 << 14
			requests := stream(c, known, func() []byte { return c.request(checkout(1)) })
			b.ReportAllocs()
			answered := 0
			for i := 0; b.Loop(); i++ {
				if i%known == 0 {
					b.StopTimer() // other identities and a fresh engine, so that none repeats
					w = newWorker(b, newFakeClock(), rules, Tenant{Keys: []apikey.Key{key}})
					b.StartTimer()
				}
				if w.ask(requests[i%known]) != nil {
					answered++
				}
			}
			if answered != b.N {
				b.Fatalf("%d of %d answered; dropped: %s", answered, b.N, drops(w))
			}
		})
	}
}

// BenchmarkForged is what a datagram costs that is not authentic.
func BenchmarkForged(b *testing.B) {
	for _, auth := range allModes[1:] {
		b.Run(auth.String(), func(b *testing.B) {
			key := newKey(b, auth, 7)
			w := newWorker(b, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
			c := newClient(b, key)
			forged := c.request(checkout(1))
			forged[50]++
			b.ReportAllocs()
			for b.Loop() {
				if w.ask(forged) != nil {
					b.Fatal("answered")
				}
			}
		})
	}
}
