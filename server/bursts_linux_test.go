package server

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// A burst is answered whole and in order, in a burst, whatever its datagrams ask for; without bursts
// just so, one by one. Metrics tell.
func TestBurstsAreAnswered(t *testing.T) {
	for _, off := range []bool{false, true} {
		key := newKey(t, apikey.AuthAES, 1)
		s := start(t, Config{Listen: []string{"127.0.0.1:0"}, Workers: 1, Admin: "127.0.0.1:0", Tenants: []Tenant{{Keys: []apikey.Key{key}}}, NoBursts: off})
		conn, err := udp.Host().Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{Bursts: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, _, able := conn.Bursts(); !able {
			t.Skip("the system knows no bursts")
		}
		const n = 40 // more than a worker takes at once
		c := newClient(t, key)
		c.header.Timestamp = systemClock{}.Now().Wall + 1 // the millisecond of the start is under the floor
		var out []udp.Datagram
		var ids []wire.UniqueID
		for i := range n {
			c.next()
			tokens := uint16(1)
			if i == n/2 {
				tokens = 500 // rejected, in the middle of the others
			}
			b := append([]byte(nil), c.request(&wire.Request{Layout: wire.Layout2, DedupTTL: 300, Resources: []wire.Resource{{Window: 60_000, Rate: 100, Tokens: tokens}}})...)
			out = append(out, udp.Datagram{Buf: b, N: len(b), Peer: s.Addrs()[0]})
			ids = append(ids, c.header.UniqueID)
		}
		if sent, err := conn.Write(out); sent != n || err != nil {
			t.Fatalf("Write = %d, %v", sent, err)
		}
		in := make([]udp.Datagram, n)
		for i := range in {
			in[i].Buf = make([]byte, wire.MaxDatagram)
		}
		for next := 0; next < n; {
			got, err := conn.Read(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range in[:got] {
				r := c.open(d.Payload(), wire.Layout2)
				if r.header.UniqueID != ids[next] || (r.view.Resource(0).Tokens == 0) != (next != n/2) {
					t.Fatalf("off %v: answer %d is %+v", off, next, r.header)
				}
				next++
			}
		}
		_, text := get(t, s, "/metrics")
		if in := strings.Contains(text, `direction="in",listen="`+s.Addrs()[0].String()+`",worker="0"} 40`); in == off {
			t.Errorf("off %v: the metrics tell of bursts: %v\n%s", off, in, lines(text, "burst"))
		}
		if able := strings.Contains(lines(text, "weir_worker_bursts_able"), "} 1"); able == off {
			t.Errorf("off %v: able is %v", off, able)
		}
	}
}

// lines are those of a text that hold a word and are no comments.
func lines(text, word string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
