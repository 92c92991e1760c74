package weir

import (
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/wire"
)

// startGranter serves on loopback until the test ends: it grants everything and
// allocates nothing.
func startGranter(t testing.TB, key apikey.Key, id ident.ServerID) discovery.Server {
	t.Helper()
	conn, err := udp.Host().Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{ReadBuffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	credential, err := wire.NewCredential(key)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := wire.NewSealer(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() { grantAll(t, conn, credential, sealer, id) })
	t.Cleanup(func() {
		conn.Close()
		ended.Wait()
	})
	return discovery.Server{ID: id, Addrs: []netip.AddrPort{conn.LocalAddr()}}
}

func grantAll(t testing.TB, conn udp.Conn, credential *wire.Credential, sealer *wire.Sealer, id ident.ServerID) {
	var envelope wire.Envelope
	var scratch wire.Scratch
	var v wire.RequestView
	var answer wire.Answer
	in := []udp.Datagram{{Buf: make([]byte, readSpace)}}
	out := []udp.Datagram{{Buf: make([]byte, 0, wire.BufferSize)}}
	for {
		if _, err := conn.Read(in); udp.Closed(err) {
			return
		}
		if wire.ParseEnvelope(in[0].Payload(), &envelope) != nil {
			continue
		}
		pdu, err := credential.Open(&envelope, &scratch)
		if err != nil || wire.ParseRequest(pdu, &v) != nil {
			continue
		}
		answer.Latencies, answer.Rates, answer.Deficits = answer.Latencies[:0], answer.Rates[:0], answer.Deficits[:0]
		for range v.Guards() {
			answer.Latencies = append(answer.Latencies, 0)
		}
		for range v.Resources() {
			answer.Rates = append(answer.Rates, 1)
			answer.Deficits = append(answer.Deficits, 0)
		}
		h := wire.Header{KeyID: uint64(id), UniqueID: envelope.Header.UniqueID, Steering: 1}
		b, err := credential.AppendResponse(out[0].Buf[:0], sealer, &h, &v, &answer)
		if err != nil {
			t.Error(err)
			return
		}
		out[0].Buf, out[0].N, out[0].Peer = b, len(b), in[0].Peer
		conn.Write(out)
	}
}

func benchClient(b testing.TB, servers int) *Client {
	key := testKey(b, apikey.AuthAES)
	cfg := Config{Key: key, Policy: policy.StrictOldest()}
	cfg.Policy.Unit = 100 * time.Millisecond // machines pause
	for i := range servers {
		cfg.Servers = append(cfg.Servers, startGranter(b, key, ident.ServerID(1000*(i+1))))
	}
	c, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

func threeAndOne() Request {
	return Request{
		Resources: []Resource{checkout.Take(1), Bucket("user", 10, time.Second).Take(1), Bucket("all", 1e6, time.Minute).Take(1)},
		Guards:    []Guard{inventory.Below(100 * time.Millisecond)},
	}
}

// settle asks until identities of earlier requests are being forgotten as fast
// as new ones come: the steady state.
func settle(c *Client, ask func()) {
	for kept, steady := 0, 0; steady < 2000; {
		ask()
		if now := c.Stats().Kept; now > kept {
			kept, steady = now, 0
		} else {
			steady++
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	for name, r := range map[string]Request{"1bucket": oneToken(), "3buckets1guard": threeAndOne()} {
		for _, servers := range []int{1, 2} {
			b.Run(name+"/servers="+string(rune('0'+servers)), func(b *testing.B) {
				c := benchClient(b, servers)
				ctx := b.Context()
				settle(c, func() { _, _ = c.Acquire(ctx, r) })
				b.ReportAllocs()
				for b.Loop() {
					if d, err := c.Acquire(ctx, r); err != nil || !d.Granted() {
						b.Fatal(d, err)
					}
				}
			})
		}
	}
}

func BenchmarkAcquireParallel(b *testing.B) {
	c := benchClient(b, 1)
	settle(c, func() { _, _ = c.Acquire(b.Context(), oneToken()) })
	b.SetParallelism(32) // times GOMAXPROCS
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r := oneToken()
		for pb.Next() {
			if _, err := c.Acquire(context.Background(), r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRoundTrip is what Acquire is held against: the same datagrams and the
// same cryptography over a connected socket, one goroutine, nothing else.
func BenchmarkRoundTrip(b *testing.B) {
	key := testKey(b, apikey.AuthAES)
	server := startGranter(b, key, 1000)
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server.Addrs[0]))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	credential, err := wire.NewCredential(key)
	if err != nil {
		b.Fatal(err)
	}
	sealer, err := wire.NewSealer(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	resource := checkout.Take(1)
	block, err := resource.encode(0)
	if err != nil {
		b.Fatal(err)
	}
	request := wire.Request{Layout: wire.Layout2, DedupTTL: 60, Resources: []wire.Resource{block}}
	var envelope wire.Envelope
	var scratch wire.Scratch
	var v wire.ResponseView
	buf := make([]byte, wire.BufferSize)
	b.ReportAllocs()
	for b.Loop() {
		h := wire.Header{Timestamp: uint64(time.Now().UnixMilli())}
		out, err := credential.AppendRequest(buf[:0], sealer, &h, &request)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Write(out); err != nil {
			b.Fatal(err)
		}
		n, err := conn.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		if err := wire.ParseEnvelope(buf[:n], &envelope); err != nil {
			b.Fatal(err)
		}
		pdu, err := credential.Open(&envelope, &scratch)
		if err != nil {
			b.Fatal(err)
		}
		if err := wire.ParseResponse(pdu, wire.Layout2, &v); err != nil {
			b.Fatal(err)
		}
	}
}
