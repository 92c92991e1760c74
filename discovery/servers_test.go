package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

var good = answering(func(q dns.Question) (int, []string, []string) {
	return 0, []string{q.Name + " 5 IN SRV 0 0 1 s-1.test."}, nil
})

func TestNextServer(t *testing.T) {
	refer := func(q *dns.Msg, _ bool) [][]byte {
		m := new(dns.Msg)
		m.SetReply(q)
		m.Ns = records([]string{"test. 5 IN NS ns.test."})
		return [][]byte{pack(m)}
	}
	tests := []struct {
		name  string
		first script
		text  string // what the error says when there is no other server
	}{
		{"refused", failing(dns.RcodeRefused), "REFUSED"},
		{"failed", failing(dns.RcodeServerFailure), "SERVFAIL"},
		{"unknown code", failing(13), "code 13"},
		{"referral", refer, "not recursive"},
		{"silent", silent, "no answer over udp"},
		{"truncated, then silent", truncated(silent), "no answer over tcp"},
		{"truncated for ever", truncated(func(q *dns.Msg, tcp bool) [][]byte { return truncated(nil)(q, false) }), "truncated over TCP"},
		{"garbage", func(*dns.Msg, bool) [][]byte { return [][]byte{make([]byte, 5)} }, "no DNS message"},
		{"garbage over TCP", truncated(func(*dns.Msg, bool) [][]byte { return [][]byte{make([]byte, 5)} }), "no DNS message"},
		{"hangs up", truncated(func(*dns.Msg, bool) [][]byte { return [][]byte{{}} }), "no DNS message"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad, fine := fakeServer(t, tt.first), fakeServer(t, good)
			r := resolverAt(bad, fine)
			r.timeout = 100 * time.Millisecond // what ends the silence; the other answers in time or is asked again
			r.attempts = 20
			got, _, err := r.LookupSRV(t.Context(), "x.test")
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v, %v", got, err)
			}
			r.servers, r.attempts = []string{bad}, 2
			_, _, err = r.LookupSRV(t.Context(), "x.test")
			if err == nil || errors.Is(err, ErrNotFound) {
				t.Fatalf("error is %v", err)
			}
			for _, s := range []string{tt.text, bad, "SRV x.test", "2 times", "check"} {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
		})
	}
}

// truncated sends an empty truncated answer over UDP and lets then handle TCP.
func truncated(then script) script {
	return func(q *dns.Msg, tcp bool) [][]byte {
		if tcp {
			return then(q, true)
		}
		m := new(dns.Msg)
		m.SetReply(q)
		m.Truncated, m.RecursionAvailable = true, true
		return [][]byte{pack(m)}
	}
}

// A server that fails is asked once, not once in every question of a refresh.
func TestLaterQuestionsBeginBehindAFailure(t *testing.T) {
	var asked atomic.Int32
	bad := fakeServer(t, func(q *dns.Msg, tcp bool) [][]byte {
		asked.Add(1)
		return failing(dns.RcodeServerFailure)(q, tcp)
	})
	down := atomic.Bool{}
	fine := fakeServer(t, func(q *dns.Msg, tcp bool) [][]byte {
		if down.Load() {
			return failing(dns.RcodeRefused)(q, tcp)
		}
		return answering(everything)(q, tcp)
	})
	r := resolverAt(bad, fine)
	if _, _, err := r.LookupSRV(t.Context(), "x.test"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := r.LookupAddrs(t.Context(), "x.test"); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the failing server was asked %d times in 4 lookups", n)
	}
	down.Store(true)
	if _, _, err := r.LookupSRV(t.Context(), "x.test"); err == nil || asked.Load() != 2 {
		t.Errorf("%v; the first server was asked %d times once the second fails too", err, asked.Load())
	}
}

func TestEveryServerIsNamed(t *testing.T) {
	a, b := fakeServer(t, failing(dns.RcodeRefused)), fakeServer(t, failing(dns.RcodeServerFailure))
	_, _, err := resolverAt(a, b).LookupSRV(t.Context(), "x.test")
	if err == nil || !strings.Contains(err.Error(), a+": it answered REFUSED; "+b+": it answered SERVFAIL") {
		t.Fatalf("error is %v", err)
	}
}

func TestTruncationGoesToTCP(t *testing.T) {
	got, _, err := resolverAt(fakeServer(t, truncated(good))).LookupSRV(t.Context(), "x.test")
	if err != nil || !slices.Equal(got, []SRV{{"s-1.test.", 1}}) {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestForgedAnswersArePassedOver(t *testing.T) {
	addr := fakeServer(t, func(q *dns.Msg, tcp bool) [][]byte {
		forge := func(f func(m *dns.Msg)) []byte {
			m := new(dns.Msg)
			m.SetReply(q)
			m.Answer = records([]string{"x.test. 5 IN SRV 0 0 666 evil.test."})
			f(m)
			return pack(m)
		}
		return [][]byte{
			{},
			{1, 2, 3},
			forge(func(m *dns.Msg) { m.Id++ }),
			forge(func(m *dns.Msg) { m.Response = false }),
			forge(func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }),
			forge(func(m *dns.Msg) { m.Question[0].Name = "y.test." }),
			forge(func(m *dns.Msg) { m.Question = nil }),
			forge(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }),
			forge(func(m *dns.Msg) { m.Question = []dns.Question{{Name: "x.test.", Qtype: dns.TypeA, Qclass: 1}} }),
			forge(func(m *dns.Msg) { m.Question = []dns.Question{{Name: "x.test.", Qtype: dns.TypeSRV, Qclass: 3}} }),
			good(q, tcp)[0],
		}
	})
	got, _, err := resolverAt(addr).LookupSRV(t.Context(), "x.test")
	if err != nil || !slices.Equal(got, []SRV{{"s-1.test.", 1}}) {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestEDNS(t *testing.T) {
	var with, without atomic.Int32
	addr := fakeServer(t, func(q *dns.Msg, tcp bool) [][]byte {
		if opt := q.IsEdns0(); opt != nil {
			with.Add(1)
			if opt.UDPSize() != 1232 {
				t.Errorf("EDNS size %d", opt.UDPSize())
			}
			m := new(dns.Msg) // an old server: cannot even repeat the question
			m.Id, m.Response, m.Rcode = q.Id, true, dns.RcodeFormatError
			return [][]byte{pack(m)}
		}
		without.Add(1)
		return good(q, tcp)
	})
	if _, _, err := resolverAt(addr).LookupSRV(t.Context(), "x.test"); err != nil || with.Load() != 1 || without.Load() != 1 {
		t.Fatalf("%v after %d questions with EDNS0, %d without", err, with.Load(), without.Load())
	}
}

func TestCancellation(t *testing.T) {
	cause := errors.New("the caller's reason")
	for _, over := range []string{"udp", "tcp"} {
		t.Run(over, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			addr := fakeServer(t, func(q *dns.Msg, tcp bool) [][]byte {
				if over == "tcp" && !tcp {
					return truncated(nil)(q, false)
				}
				cancel(cause)
				return nil
			})
			// A try lasts an hour: only the cancellation can end this.
			_, _, err := resolverAt(addr).LookupSRV(ctx, "x.test")
			checkErr(t, err, cause, "given up while asking "+addr, "SRV x.test")
			_, _, err = resolverAt(addr).LookupAddrs(ctx, "x.test")
			checkErr(t, err, cause)
		})
	}
}

func TestNewDNS(t *testing.T) {
	r, err := NewDNS("127.0.0.1", "127.0.0.1:1053", "::1", "[::1]", "[2001:db8::1]:54")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"127.0.0.1:53", "127.0.0.1:1053", "[::1]:53", "[::1]:53", "[2001:db8::1]:54"}
	if got := r.(*dnsResolver).servers; !slices.Equal(got, want) {
		t.Errorf("servers %v", got)
	}
	for _, bad := range [][]string{nil, {""}, {"localhost"}, {"ns.test:53"}, {"127.0.0.1:0"}, {"127.0.0.1:x"}, {"::1:53:x"}, make([]string, 9)} {
		if _, err := NewDNS(bad...); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
