package discovery

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const soa = "rl.test. 1 IN SOA ns.rl.test. host.rl.test. 1 2 3 4 1"

func TestLookupSRV(t *testing.T) {
	const name = "_ratelimitly._udp.c-7.rl.test"
	tests := []struct {
		name      string
		rcode     int
		answer    []string
		authority []string
		want      []SRV
		ttl       time.Duration
		err       error
		text      string
	}{
		{
			name: "sorted, lower case, without duplicates, smallest TTL",
			answer: []string{
				name + ". 30 IN SRV 9 9 2 S-5.rl.test.",
				name + ". 7 IN SRV 0 0 1 s-5.rl.test.",
				name + ". 40 IN SRV 0 0 2 s-5.rl.test.",
				name + ". 40 IN SRV 0 0 9 s-4.rl.test.",
			},
			want: []SRV{{"s-4.rl.test.", 9}, {"s-5.rl.test.", 1}, {"s-5.rl.test.", 2}},
			ttl:  7 * time.Second,
		},
		{
			name:   "the owner's case does not matter, other names and classes do",
			answer: []string{"_RateLimitly._UDP.C-7.rl.test. 5 IN SRV 0 0 1 a.", "other.test. 1 IN SRV 0 0 1 b.", name + ". 1 CH SRV 0 0 1 c."},
			want:   []SRV{{"a.", 1}},
			ttl:    5 * time.Second,
		},
		{
			name:   "the TTL of an alias counts",
			answer: []string{name + ". 3 IN CNAME x.test.", "x.test. 60 IN SRV 0 0 1 s-1.test."},
			want:   []SRV{{"s-1.test.", 1}},
			ttl:    3 * time.Second,
		},
		{
			name:   "TTL zero is a second, not unknown",
			answer: []string{name + ". 0 IN SRV 0 0 1 a."},
			want:   []SRV{{"a.", 1}},
			ttl:    time.Second,
		},
		{
			name:   "TTL with the top bit is zero",
			answer: []string{name + ". 4294967295 IN SRV 0 0 1 a.", name + ". 60 IN SRV 0 0 1 b."},
			want:   []SRV{{"a.", 1}, {"b.", 1}},
			ttl:    time.Second,
		},
		{name: "no such name", rcode: dns.RcodeNameError, authority: []string{soa}, err: ErrNotFound, text: "NXDOMAIN"},
		{name: "no such record", authority: []string{soa}, err: ErrNotFound, text: "no such record"},
		{name: "no such record and no SOA", err: ErrNotFound, text: "no such record"},
		{name: "an alias to nowhere", rcode: dns.RcodeNameError, answer: []string{name + ". 3 IN CNAME x.test."}, err: ErrNotFound, text: "NXDOMAIN"},
		{name: "an alias to nothing", answer: []string{name + ". 3 IN CNAME x.test."}, authority: []string{soa}, err: ErrNotFound, text: "no such record"},
		{name: "not offered", answer: []string{name + ". 3 IN SRV 0 0 0 ."}, err: ErrNotFound, text: "not offered"},
		{
			name:   "aliases in a circle",
			answer: []string{name + ". 3 IN CNAME x.test.", "x.test. 3 IN CNAME " + name + "."},
			err:    errAliases, text: "circle",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := fakeServer(t, answering(func(q dns.Question) (int, []string, []string) {
				return tt.rcode, tt.answer, tt.authority
			}))
			got, ttl, err := resolverAt(addr).LookupSRV(t.Context(), name)
			if tt.err != nil {
				checkErr(t, err, tt.err, tt.text, "SRV "+name, addr)
				return
			}
			if err != nil || !slices.Equal(got, tt.want) || ttl != tt.ttl {
				t.Fatalf("got %v, %v, %v; want %v, %v", got, ttl, err, tt.want, tt.ttl)
			}
		})
	}
}

func checkErr(t *testing.T, err, is error, texts ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Fatalf("error %v is not %v", err, is)
	}
	for _, s := range append(texts, "discovery: ") {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q has more than one line", err)
	}
}

func TestAliasIntoAnotherZone(t *testing.T) {
	// An authoritative server tells the alias and no more: ask again.
	addr := fakeServer(t, answering(func(q dns.Question) (int, []string, []string) {
		if q.Name == "a.test." {
			return 0, []string{"a.test. 9 IN CNAME b.example."}, nil
		}
		return 0, []string{"b.example. 60 IN SRV 0 0 1 s-1.example."}, nil
	}))
	got, ttl, err := resolverAt(addr).LookupSRV(t.Context(), "a.test")
	if err != nil || len(got) != 1 || got[0].Target != "s-1.example." || ttl != 9*time.Second {
		t.Fatalf("got %v, %v, %v", got, ttl, err)
	}
}

func TestEndlessAliases(t *testing.T) {
	addr := fakeServer(t, answering(func(q dns.Question) (int, []string, []string) {
		return 0, []string{q.Name + " 9 IN CNAME x." + q.Name}, nil
	}))
	_, _, err := resolverAt(addr).LookupSRV(t.Context(), "a.test")
	checkErr(t, err, errAliases, addr)
}

func TestInvalidNameIsNotAsked(t *testing.T) {
	addr := fakeServer(t, func(q *dns.Msg, _ bool) [][]byte {
		t.Errorf("asked %v", q.Question)
		return nil
	})
	for _, name := range []string{"", "..", strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 200) + "test", strings.Repeat("x", 5000)} {
		if _, _, err := resolverAt(addr).LookupSRV(t.Context(), name); err == nil || !strings.Contains(err.Error(), "not a domain name") {
			t.Errorf("%.20q: %v", name, err)
		}
		if _, _, err := resolverAt(addr).LookupAddrs(t.Context(), name); err == nil {
			t.Errorf("%.20q: no error", name)
		}
	}
}

// A record may come without data; it is none then.
func TestRecordsWithoutData(t *testing.T) {
	addr := fakeServer(t, func(q *dns.Msg, _ bool) [][]byte {
		m := new(dns.Msg)
		m.SetReply(q)
		b := pack(m)
		b[7] = 1 // one answer: the question's name, its type, IN, TTL 5, no data
		qtype := q.Question[0].Qtype
		return [][]byte{append(b, 0xc0, 12, byte(qtype>>8), byte(qtype), 0, 1, 0, 0, 0, 5, 0, 0)}
	})
	if _, _, err := resolverAt(addr).LookupSRV(t.Context(), "x.test"); !errors.Is(err, ErrNotFound) {
		t.Errorf("SRV: %v", err)
	}
	if _, _, err := resolverAt(addr).LookupAddrs(t.Context(), "x.test"); !errors.Is(err, ErrNotFound) {
		t.Errorf("addresses: %v", err)
	}
}
