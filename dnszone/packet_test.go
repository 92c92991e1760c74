package dnszone

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/storm"
)

// manyMembers makes n members, each with an IPv4 and an IPv6 address.
func manyMembers(n int) []Member {
	out := make([]Member, n)
	for i := range out {
		v4 := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		v6 := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)})
		out[i] = Member{ID: 1<<63 + ident.ServerID(i), Addrs: []netip.AddrPort{netip.AddrPortFrom(v4, 29292), netip.AddrPortFrom(v6, 29292)}}
	}
	return out
}

func packQuestion(t testing.TB, name string, qtype uint16, edns uint16) []byte {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(name, qtype)
	q.Id = 0x1234
	if edns > 0 {
		q.SetEdns0(edns, false)
	}
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unpack(t testing.TB, b []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatal(err)
	}
	return m
}

// Over UDP an answer is whole or says that it is not; over TCP it is whole.
func TestTruncation(t *testing.T) {
	const name = "_ratelimitly._udp.c-7.rl.test."
	z := mustZone(t, Config{Zone: "rl.test"})
	whole := map[uint16]int{} // most members whose SRV records fit, by EDNS size
	for n := 1; n <= 60; n++ {
		if err := z.SetMembers(manyMembers(n)); err != nil {
			t.Fatal(err)
		}
		for _, edns := range []uint16{0, 100, 512, 800, 1232, 4096, 65535} {
			out := z.respond(packQuestion(t, name, dns.TypeSRV, edns), true)
			m := unpack(t, out)
			limit := min(max(int(edns), 512), 1232)
			switch {
			case len(out) > limit:
				t.Fatalf("%d members: %d bytes to a client that takes %d", n, len(out), limit)
			case m.Truncated && (len(m.Answer) > 0 || len(m.Ns) > 0):
				t.Fatalf("%d members: a truncated answer has records", n)
			case !m.Truncated && len(m.Answer) != n:
				t.Fatalf("%d members: %d records and no TC", n, len(m.Answer))
			case !m.Truncated:
				whole[edns] = n
			}
			addresses := len(m.Extra)
			if m.IsEdns0() != nil {
				addresses--
			}
			if addresses%2 != 0 {
				t.Fatalf("%d members: half of a host's addresses are added", n)
			}
		}
		m := unpack(t, z.respond(packQuestion(t, name, dns.TypeSRV, 0), false))
		if m.Truncated || len(m.Answer) != n {
			t.Fatalf("TCP: %d of %d records, truncated %t", len(m.Answer), n, m.Truncated)
		}
	}
	if whole[512] < 5 || whole[1232] < 20 || whole[4096] != whole[1232] || whole[100] > whole[0] {
		t.Errorf("whole answers up to %v members", whole)
	}
}

// The largest zone there can be still answers over TCP.
func TestLargestZone(t *testing.T) {
	l63 := strings.Repeat("a", 63)
	zone := strings.Join([]string{l63, l63, l63, strings.Repeat("b", 20)}, ".")
	members := make([]Member, 0, MaxRecords/2)
	for i := range MaxRecords / 2 {
		m := Member{ID: 1<<64 - 1 - ident.ServerID(i)}
		for j := range MaxMemberAddrs {
			ip := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(i), 15: byte(j)})
			m.Addrs = append(m.Addrs, netip.AddrPortFrom(ip, 1), netip.AddrPortFrom(ip, 2))
		}
		members = append(members, m)
	}
	z := mustZone(t, Config{Zone: zone}, members...)
	out := z.respond(packQuestion(t, "_ratelimitly._udp.c-18446744073709551615."+zone+".", dns.TypeSRV, 1232), false)
	if m := unpack(t, out); len(m.Answer) != MaxRecords || m.Truncated {
		t.Fatalf("%d records in %d bytes", len(m.Answer), len(out))
	}
	t.Logf("%d records are %d bytes", MaxRecords, len(out))
	for _, m := range members[:3] {
		out := z.respond(packQuestion(t, m.ID.Label()+"."+zone+".", dns.TypeAAAA, 1232), true)
		if a := unpack(t, out); len(a.Answer) != MaxMemberAddrs || len(out) > maxUDP {
			t.Fatalf("%d addresses in %d bytes", len(a.Answer), len(out))
		}
	}
	if err := z.SetMembers(append(members, Member{ID: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}})); err == nil || !strings.Contains(err.Error(), "129 SRV records") {
		t.Errorf("too many members: %v", err)
	}
}

func TestMemberBounds(t *testing.T) {
	z := mustZone(t, Config{Zone: "rl.test"})
	var m Member
	for i := range MaxMemberAddrs + 1 {
		m.Addrs = append(m.Addrs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 1))
	}
	for name, m := range map[string]Member{"too many": m, "none": {}, "invalid": {Addrs: make([]netip.AddrPort, 1)}, "far too many": {Addrs: make([]netip.AddrPort, 65)}} {
		if err := z.SetMembers([]Member{m}); err == nil || z.Serial() != 1 {
			t.Errorf("%s addresses: %v, serial %d", name, err, z.Serial())
		}
	}
}

func TestRawMessages(t *testing.T) {
	z := mustZone(t, Config{Zone: "rl.test"}, manyMembers(1)...)
	good := packQuestion(t, "rl.test.", dns.TypeSOA, 0)
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	count := func(at int, n uint16) []byte {
		return edit(func(b []byte) []byte { binary.BigEndian.PutUint16(b[at:], n); return b })
	}
	tests := []struct {
		name  string
		b     []byte
		rcode int // -1: no answer
	}{
		{"good", good, dns.RcodeSuccess},
		{"bytes behind it", append(bytes.Clone(good), 1, 2, 3), dns.RcodeSuccess},
		{"empty", nil, -1},
		{"eleven bytes", good[:11], -1},
		{"an answer", edit(func(b []byte) []byte { b[2] |= flagQR; return b }), -1},
		{"an answer with another opcode", edit(func(b []byte) []byte { b[2] |= flagQR | 4<<3; return b }), -1},
		{"a header alone", good[:12], dns.RcodeFormatError},
		{"cut in the name", good[:15], dns.RcodeFormatError},
		{"no question", count(4, 0), dns.RcodeFormatError},
		{"two questions", count(4, 2), dns.RcodeFormatError},
		{"65535 questions", count(4, 65535), dns.RcodeFormatError},
		{"an answer record", count(6, 1), dns.RcodeFormatError},
		{"two authority records", count(8, 2), dns.RcodeFormatError},
		{"three additional records", count(10, 3), dns.RcodeFormatError},
		{"opcode 15", edit(func(b []byte) []byte { b[2] |= 15 << 3; return b }), dns.RcodeNotImplemented},
		{"a name that points to itself", append(append(bytes.Clone(good[:12]), 0xc0, 12), 0, 6, 0, 1), dns.RcodeFormatError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, udp := range []bool{true, false} {
				out := z.respond(tt.b, udp)
				if tt.rcode < 0 {
					if out != nil {
						t.Fatalf("answered with %x", out)
					}
					continue
				}
				if m := unpack(t, out); m.Rcode != tt.rcode || m.Id != 0x1234 || !m.Response {
					t.Fatalf("answered with %v", m)
				}
			}
		})
	}
}

func TestHandleItself(t *testing.T) {
	z := mustZone(t, Config{Zone: "rl.test"})
	q := new(dns.Msg)
	q.SetQuestion("rl.test.", dns.TypeSOA)
	q.Response = true
	if m := z.Handle(q, true); m != nil {
		t.Errorf("an answer is answered with %v", m)
	}
	q.Response = false
	q.Ns = []dns.RR{z.soa(z.state.Load(), "rl.test.", 1)}
	if m := z.Handle(q, true); m.Rcode != dns.RcodeFormatError {
		t.Errorf("a question with an authority record is answered with %v", m)
	}
	q.Question[0].Qtype = dns.TypeIXFR
	if m := z.Handle(q, false); m.Rcode != dns.RcodeRefused {
		t.Errorf("IXFR is answered with %v", m)
	}
	if m := z.Handle(new(dns.Msg), true); m.Rcode != dns.RcodeFormatError {
		t.Errorf("no question is answered with %v", m)
	}
}

// What the zone says is what it was told: a reader that trusts nothing but the
// answers finds each member's endpoints, for each key, and no other names.
func TestAnswersAreTheMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var keys []uint64
		if rapid.Bool().Draw(t, "listed keys") {
			keys = rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 5).Draw(t, "keys")
		}
		members := drawMembers(t)
		z, err := New(Config{Zone: "rl.test", KeyIDs: keys})
		if err != nil {
			t.Fatal(err)
		}
		if err := z.SetMembers(members); err != nil {
			t.Fatal(err)
		}
		for key := uint64(0); key < 10; key++ {
			m := z.Handle(new(dns.Msg).SetQuestion(fmt.Sprintf("_ratelimitly._udp.c-%d.rl.test.", key), dns.TypeSRV), false)
			if keys != nil && !slices.Contains(keys, key) {
				if m.Rcode != dns.RcodeNameError {
					t.Fatalf("key %d has no servers, and the answer is %v", key, m)
				}
				continue
			}
			if got := endpoints(t, z, m); !slices.Equal(got, endpointsOf(members)) {
				t.Fatalf("key %d: %v, want %v", key, got, endpointsOf(members))
			}
		}
		if !slices.EqualFunc(z.Members(), members, func(a, b Member) bool { return a.ID == b.ID }) {
			t.Fatalf("Members() gives %v", z.Members())
		}
	})
}

func drawMembers(t *rapid.T) []Member {
	ids := rapid.SliceOfNDistinct(rapid.Uint64(), 0, 8, rapid.ID).Draw(t, "ids")
	slices.Sort(ids)
	var out []Member
	for _, id := range ids {
		m := Member{ID: ident.ServerID(id)}
		ports := rapid.SliceOfNDistinct(rapid.Uint16Min(1), 1, 2, rapid.ID).Draw(t, "ports")
		for _, last := range rapid.SliceOfNDistinct(rapid.Byte(), 1, 3, rapid.ID).Draw(t, "hosts") {
			ip := netip.AddrFrom4([4]byte{192, 0, 2, last})
			if last%2 == 0 {
				ip = netip.AddrFrom16([16]byte{0x20, 1, 15: last})
			}
			for _, p := range ports {
				m.Addrs = append(m.Addrs, netip.AddrPortFrom(ip, p))
			}
		}
		out = append(out, m)
	}
	return out
}

func endpointsOf(members []Member) []string {
	var out []string
	for _, m := range members {
		for _, a := range m.Addrs {
			out = append(out, fmt.Sprintf("%v@%v", m.ID, a))
		}
	}
	slices.Sort(out)
	return out
}

// endpoints follows the SRV records of an answer to addresses.
func endpoints(t *rapid.T, z *Zone, m *dns.Msg) []string {
	var out []string
	for _, rr := range m.Answer {
		srv := rr.(*dns.SRV)
		id, ok := ident.ParseTarget(srv.Target)
		if !ok {
			t.Fatalf("target %s", srv.Target)
		}
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			for _, rr := range z.Handle(new(dns.Msg).SetQuestion(srv.Target, qtype), false).Answer {
				var ip netip.Addr
				switch rr := rr.(type) {
				case *dns.A:
					ip, _ = netip.AddrFromSlice(rr.A)
				case *dns.AAAA:
					ip, _ = netip.AddrFromSlice(rr.AAAA)
				}
				out = append(out, fmt.Sprintf("%v@%v", id, netip.AddrPortFrom(ip, srv.Port)))
			}
		}
	}
	slices.Sort(out)
	return out
}

func handleTarget(tb testing.TB) *storm.Target {
	z := mustZone(tb, Config{Zone: "rl.test", NameServerAddrs: []netip.Addr{netip.MustParseAddr("192.0.2.53")}}, manyMembers(40)...)
	target := storm.New2("FuzzHandle", func(t testing.TB, b []byte, udp bool) {
		before := bytes.Clone(b)
		out := z.respond(b, udp)
		checkAnswer(t, before, out, udp)
		if s := slip(b); s != nil {
			if m := unpack(t, s); !m.Truncated || len(s) > len(b) {
				t.Fatalf("a slip of %d bytes for a question of %d: %v", len(s), len(b), m)
			}
		}
		if !bytes.Equal(b, before) {
			t.Fatal("the question was changed")
		}
	})
	for _, name := range []string{"rl.test.", "_ratelimitly._udp.c-7.rl.test.", "s-9223372036854775808.RL.test.", "c-7.rl.test.", "ns.rl.test.", `a\.b.rl.test.`, "example."} {
		for _, qtype := range []uint16{dns.TypeSRV, dns.TypeA, dns.TypeSOA, dns.TypeNS, dns.TypeANY, dns.TypeAXFR} {
			target.Add(packQuestion(tb, name, qtype, 0), true)
			target.Add(packQuestion(tb, name, qtype, 1232), false)
		}
	}
	target.Add([]byte{}, true)
	target.Add([]byte{0, 1, 0x28, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 6, 0, 1}, false)
	return target
}

func FuzzHandle(f *testing.F)      { handleTarget(f).Fuzz(f) }
func TestStormHandle(t *testing.T) { handleTarget(t).Storm(t) }

func checkAnswer(t testing.TB, q, out []byte, udp bool) {
	t.Helper()
	if out == nil {
		if len(q) >= headerSize && q[2]&flagQR == 0 {
			t.Fatal("a question is not answered")
		}
		return
	}
	m := unpack(t, out)
	switch {
	case !m.Response, m.RecursionAvailable, m.Id != binary.BigEndian.Uint16(q):
		t.Fatalf("not an answer to it: %v", m)
	case udp && len(out) > maxUDP:
		t.Fatalf("%d bytes over UDP", len(out))
	case !udp && m.Truncated:
		t.Fatal("truncated over TCP")
	case m.Rcode == dns.RcodeServerFailure:
		t.Fatal("an answer could not be packed")
	case len(m.Answer) > 0 && !m.Authoritative:
		t.Fatalf("records without authority: %v", m)
	}
}

func BenchmarkHandle(b *testing.B) {
	z := mustZone(b, Config{Zone: "rl.test"}, manyMembers(3)...)
	q := packQuestion(b, "_ratelimitly._udp.c-7.rl.test.", dns.TypeSRV, 1232)
	b.ReportAllocs()
	for b.Loop() {
		z.respond(q, true)
	}
}
