package dnszone

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
)

// serve runs a server on loopback until the test ends.
func serve(t *testing.T, z *Zone, listen string, opts Options) *Server {
	t.Helper()
	s, err := Listen(listen, z, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// What discovery finds in the zone is the members, over UDP and, where they do
// not fit, over TCP.
func TestDiscoveryFindsTheMembers(t *testing.T) {
	z := mustZone(t, Config{Zone: "rl.test", TTL: 7 * time.Second, KeyIDs: []uint64{7}})
	s := serve(t, z, "127.0.0.1:0", Options{})
	r, err := discovery.NewDNS(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 16, 60, 100} {
		members := manyMembers(n)
		if err := z.SetMembers(members); err != nil {
			t.Fatal(err)
		}
		tcpBefore := s.Stats().TCP
		if got, want := discovered(t, r, discovery.ServiceName(discovery.Domain("rl.test", 7))), endpointsOf(members); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("%d members: found\n%v, want\n%v", n, got, want)
		}
		if overTCP := s.Stats().TCP > tcpBefore; overTCP != (n > 40) {
			t.Errorf("%d members: over TCP %t", n, overTCP)
		}
	}
	_, _, err = r.LookupSRV(t.Context(), discovery.ServiceName(discovery.Domain("rl.test", 8)))
	if !errors.Is(err, discovery.ErrNotFound) || !strings.Contains(err.Error(), "NXDOMAIN") {
		t.Errorf("a key without servers: %v", err)
	}
	_, _, err = r.LookupSRV(t.Context(), "c-7.rl.test")
	if !errors.Is(err, discovery.ErrNotFound) || !strings.Contains(err.Error(), "no such record") {
		t.Errorf("a name without the record: %v", err)
	}
	_, _, err = r.LookupSRV(t.Context(), "example.com")
	if err == nil || !strings.Contains(err.Error(), "REFUSED") {
		t.Errorf("another zone: %v", err)
	}
}

// discovered looks a membership up as a client does.
func discovered(t *testing.T, r discovery.Resolver, name string) []string {
	t.Helper()
	srv, ttl, err := r.LookupSRV(t.Context(), name)
	if err != nil || ttl != 7*time.Second {
		t.Fatalf("%v, TTL %v", err, ttl)
	}
	var found []Member
	for _, rec := range srv {
		addrs, ttl, err := r.LookupAddrs(t.Context(), rec.Target)
		if err != nil || ttl != 7*time.Second {
			t.Fatalf("%s: %v, TTL %v", rec.Target, err, ttl)
		}
		m := Member{}
		var ok bool
		if m.ID, ok = ident.ParseTarget(rec.Target); !ok {
			t.Fatalf("target %s", rec.Target)
		}
		for _, a := range addrs {
			m.Addrs = append(m.Addrs, netip.AddrPortFrom(a, rec.Port))
		}
		found = append(found, m)
	}
	return endpointsOf(found)
}

func TestPortTaken(t *testing.T) {
	z := mustZone(t, Config{Zone: "rl.test"})
	s := serve(t, z, "127.0.0.1:0", Options{})
	if _, err := Listen(s.Addr().String(), z, Options{}); err == nil || !strings.Contains(err.Error(), s.Addr().String()+" over TCP") {
		t.Errorf("a second server on %v: %v", s.Addr(), err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	if _, err := Listen(udp.LocalAddr().String(), z, Options{}); err == nil || !strings.Contains(err.Error(), "over UDP") {
		t.Errorf("on a port taken for UDP: %v", err)
	}
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"} {
		if _, err := Listen(bad, z, Options{}); err == nil {
			t.Errorf("listens on %q", bad)
		}
	}
	if _, err := Listen("127.0.0.1:0", nil, Options{}); err == nil {
		t.Error("listens without a zone")
	}
}

// exchangeUDP asks from a socket that takes an answer only from where it asked.
func exchangeUDP(t *testing.T, server string, b []byte) *dns.Msg {
	t.Helper()
	conn, err := net.Dial("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, buf[:n])
}

func TestWildcardAnswersFromTheAddressAsked(t *testing.T) {
	if probe, err := net.ListenPacket("udp", "127.0.0.2:0"); err != nil {
		t.Skip("this system has no 127.0.0.2: ", err)
	} else {
		probe.Close()
	}
	z := mustZone(t, Config{Zone: "rl.test"})
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		s := serve(t, z, listen, Options{})
		port := s.Addr().Port()
		if listen == "0.0.0.0:0" && s.Addr().Addr() != netip.IPv4Unspecified() {
			t.Errorf("%s became %v, which others reach over IPv6", listen, s.Addr())
		}
		targets := []string{"127.0.0.1", "127.0.0.2"}
		if listen != "0.0.0.0:0" && hasIPv6() {
			targets = append(targets, "::1")
		}
		for _, ip := range targets {
			m := exchangeUDP(t, netip.AddrPortFrom(addr(ip), port).String(), packQuestion(t, "rl.test.", dns.TypeSOA, 0))
			if m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
				t.Errorf("%s at %s: %v", listen, ip, m)
			}
		}
	}
}

func hasIPv6() bool {
	c, err := net.ListenPacket("udp", "[::1]:0")
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// A connection carries several questions, and one that is nonsense ends it.
func TestTCPConnection(t *testing.T) {
	z := mustZone(t, Config{Zone: "rl.test"}, manyMembers(60)...)
	s := serve(t, z, "127.0.0.1:0", Options{})
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var all []byte
	names := []string{"_ratelimitly._udp.c-7.rl.test.", "_ratelimitly._udp.c-8.rl.test."}
	for _, n := range names {
		b := packQuestion(t, n, dns.TypeSRV, 0)
		all = append(binary.BigEndian.AppendUint16(all, uint16(len(b))), b...)
	}
	if _, err := conn.Write(all); err != nil { // both before the first answer is read
		t.Fatal(err)
	}
	for _, n := range names {
		if m := readTCP(t, conn); len(m.Answer) != 60 || m.Question[0].Name != n {
			t.Fatalf("%s: %v", n, m)
		}
	}
	if _, err := conn.Write([]byte{0, 3, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after nonsense: %v", err)
	}
	long, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if _, err := long.Write([]byte{0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if _, err := long.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a question of 65535 bytes: %v", err)
	}
}

func readTCP(t *testing.T, conn net.Conn) *dns.Msg {
	t.Helper()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Fatal(err)
	}
	return unpack(t, b)
}

func TestTCPConnectionsAreBounded(t *testing.T) {
	s := serve(t, mustZone(t, Config{Zone: "rl.test"}), "127.0.0.1:0", Options{})
	b := packQuestion(t, "rl.test.", dns.TypeSOA, 0)
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	for range maxGuestsPrefix { // each has been let in: it is answered
		conn := dial()
		if _, err := conn.Write(framed); err != nil {
			t.Fatal(err)
		}
		readTCP(t, conn)
	}
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("one more connection than the bound is served")
	}
	if s.Stats().Refused != 1 {
		t.Errorf("stats: %+v", s.Stats())
	}
}

// Closing lets go of connections that are open, and everything ends.
func TestCloseWhileInUse(t *testing.T) {
	s, err := Listen("127.0.0.1:0", mustZone(t, Config{Zone: "rl.test"}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background()) }()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := packQuestion(t, "rl.test.", dns.TypeSOA, 0)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)); err != nil {
		t.Fatal(err)
	}
	readTCP(t, conn)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestNeverServed(t *testing.T) {
	s, err := Listen("127.0.0.1:0", mustZone(t, Config{Zone: "rl.test"}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Serve(t.Context()); err != nil {
		t.Errorf("serving after Close: %v", err)
	}
}

// The way of a datagram from a limited source, which loopback never is.
func TestWithheldAnswers(t *testing.T) {
	s, err := Listen("127.0.0.1:0", mustZone(t, Config{Zone: "rl.test"}), Options{ResponseRate: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q := packQuestion(t, "rl.TEST.", dns.TypeSOA, 1232)
	from := addr("192.0.2.1")
	s.limiter.start = time.Now().Add(time.Hour) // time stands still: the burst and no more
	var kinds []string
	for range 6 {
		out := s.limited(q, from)
		switch {
		case out == nil:
			kinds = append(kinds, "nothing")
		case unpack(t, out).Truncated:
			m := unpack(t, out)
			if m.Question[0].Name != "rl.TEST." || len(m.Answer) > 0 || len(out) > len(q) {
				t.Errorf("the slip is %v", m)
			}
			kinds = append(kinds, "slip")
		default:
			kinds = append(kinds, "answer")
		}
	}
	if got := strings.Join(kinds, ", "); got != "answer, answer, nothing, slip, nothing, slip" {
		t.Errorf("got %s", got)
	}
	if s.limited([]byte{1, 2}, from) != nil || s.limited(append(q[:2:2], append([]byte{flagQR}, q[3:]...)...), from) != nil {
		t.Error("what is no question is answered")
	}
	if s.limited(append(q, make([]byte, maxQuestion)...), netip.IPv6Loopback()) != nil {
		t.Error("more than any question has is answered")
	}
	if st := s.Stats(); st.Withheld != 2 || st.Slipped != 2 || st.Ignored != 3 {
		t.Errorf("stats: %+v", st)
	}
}

// Datagrams of the greatest length, however many in a row, do not end the server.
func TestLongDatagrams(t *testing.T) {
	s := serve(t, mustZone(t, Config{Zone: "rl.test"}), "127.0.0.1:0", Options{})
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const longest = 65507 // over IPv4
	for range maxUDPErrors + 1 {
		if _, err := conn.Write(make([]byte, longest)); err != nil {
			t.Fatal(err)
		}
	}
	// Some of those may be lost; a question that is may be asked again.
	q := packQuestion(t, "rl.test.", dns.TypeSOA, 1232)
	in := make([]byte, maxUDP)
	for range 100 {
		if _, err := conn.Write(q); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(in); err == nil {
			if m := unpack(t, in[:n]); len(m.Answer) != 1 {
				t.Errorf("the answer is %v", m)
			}
			if st := s.Stats(); st.Ignored == 0 {
				t.Errorf("stats: %+v", st)
			}
			return
		}
	}
	t.Fatal("no answer")
}
