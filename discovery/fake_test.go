package discovery

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script answers a question with datagrams, or with the first of them over TCP;
// with none it stays silent.
type script func(q *dns.Msg, tcp bool) [][]byte

// fakeServer runs a scripted DNS server on loopback, UDP and TCP on one port,
// until the test ends.
func fakeServer(t *testing.T, s script) string {
	t.Helper()
	udp, tcp := bindBoth(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			q := new(dns.Msg)
			if q.Unpack(buf[:n]) != nil {
				continue
			}
			wg.Go(func() {
				for _, b := range s(q, false) {
					_, _ = udp.WriteTo(b, from)
				}
			})
		}
	})
	wg.Go(func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serveTCP(conn, s)
			})
		}
	})
	t.Cleanup(func() {
		udp.Close()
		tcp.Close()
		wg.Wait()
	})
	return udp.LocalAddr().String()
}

func serveTCP(conn net.Conn, s script) {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, b); err != nil {
		return
	}
	q := new(dns.Msg)
	if q.Unpack(b) != nil {
		return
	}
	out := s(q, true)
	if len(out) == 0 {
		_, _ = conn.Read(size[:]) // silent until the client hangs up
		return
	}
	_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out[0]))), out[0]...))
}

func bindBoth(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tcp, err := net.Listen("tcp", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp
		}
		udp.Close()
	}
	t.Fatal("no port free for both UDP and TCP")
	return nil, nil
}

// answering replies to every question with the records that f gives for it.
func answering(f func(q dns.Question) (rcode int, answer, authority []string)) script {
	return func(q *dns.Msg, _ bool) [][]byte {
		m := new(dns.Msg)
		m.SetReply(q)
		rcode, answer, authority := f(q.Question[0])
		m.Rcode, m.RecursionAvailable = rcode, true
		m.Answer, m.Ns = records(answer), records(authority)
		return [][]byte{pack(m)}
	}
}

func records(lines []string) []dns.RR {
	var out []dns.RR
	for _, l := range lines {
		rr, err := dns.NewRR(l)
		if err != nil {
			panic(err)
		}
		out = append(out, rr)
	}
	return out
}

func pack(m *dns.Msg) []byte {
	m.Compress = true
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func failing(rcode int) script {
	return answering(func(dns.Question) (int, []string, []string) { return rcode, nil, nil })
}

func silent(*dns.Msg, bool) [][]byte { return nil }

// resolverAt never gives up by itself unless a test says so: what ends a lookup
// is then what the test does, not the clock.
func resolverAt(servers ...string) *dnsResolver {
	return &dnsResolver{servers: servers, timeout: time.Hour, attempts: 1, grace: time.Hour}
}
