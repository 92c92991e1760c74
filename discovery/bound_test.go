package discovery

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/miekg/dns"

	"github.com/weirhq/weir/internal/storm"
)

// A poisoned answer costs what 64 KiB of DNS can cost, and leaves MaxTargets.
func TestPoisonedAnswerIsBounded(t *testing.T) {
	const n = 1200
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("x.test. 5 IN SRV 0 0 1 s-%04d.a-long-zone-name.test.", i)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	addr := fakeServer(t, truncated(answering(func(dns.Question) (int, []string, []string) {
		shuffled := slices.Clone(lines)
		rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return 0, shuffled, nil
	})))
	var first []SRV
	for range 3 {
		got, _, err := resolverAt(addr).LookupSRV(t.Context(), "x.test")
		if err != nil || len(got) != MaxTargets || cap(got) != MaxTargets {
			t.Fatalf("%d targets, room for %d, %v", len(got), cap(got), err)
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Fatal("another order of records gives another result")
		}
	}
}

// The worst that fits a message: names that a few bytes blow up to their full
// length by compression.
func TestDecompressionIsBounded(t *testing.T) {
	q := question("x.test.", dns.TypeSRV, false)
	b := inflated(q)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := decode(b, q)
	runtime.ReadMemStats(&after)
	if err != nil || len(m.Answer) < 3000 {
		t.Fatalf("the message is not the one that was meant: %v", err)
	}
	spent := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d bytes with %d records cost %d KiB to read", len(b), len(m.Answer), spent>>10)
	if spent > 16<<20 {
		t.Errorf("reading one message allocated %d MiB", spent>>20)
	}
}

// inflated builds an answer to q of 64 KiB in which every record's target is a
// pointer to one name of 255 octets, all of them such as print as four characters.
func inflated(q *dns.Msg) []byte {
	m := new(dns.Msg)
	m.SetReply(q)
	b := pack(m)
	owner := []byte{0xc0, 12} // the question's name
	name := []byte{}
	for _, n := range []int{63, 63, 63, 61} {
		name = append(name, byte(n))
		for range n {
			name = append(name, 0x01)
		}
	}
	name = append(name, 0)
	count := 0
	add := func(target []byte) {
		b = append(b, owner...)
		b = append(b, 0, 33, 0, 1, 0, 0, 0, 5, 0, byte(6+len(target)), 0, 0, 0, 0, 0, 1)
		b = append(b, target...)
		count++
	}
	at := len(b) + 2 + 10 + 6
	if len(name)+6 > 255 {
		name = append(name[:63*3+3], 0)
	}
	add(name)
	for len(b)+20 <= 65535 {
		add([]byte{0xc0 | byte(at>>8), byte(at)})
	}
	b[6], b[7] = byte(count>>8), byte(count)
	return b
}

func decodeTarget() *storm.Target {
	q := question("x.test.", dns.TypeSRV, true)
	q.Id = 7
	target := storm.New("FuzzDecode", func(t testing.TB, b []byte) {
		m, err := decode(b, q)
		if err != nil {
			return
		}
		for _, qtype := range []uint16{dns.TypeSRV, dns.TypeA, dns.TypeAAAA} {
			c := chain{name: "x.test.", ttl: 1<<31 - 1}
			rrs, err := c.follow(m, qtype)
			if c.hops > maxAliases+1 || (err == nil && c.hops > maxAliases) {
				t.Fatalf("%d aliases followed", c.hops)
			}
			if c.lifetime() < minTTL {
				t.Fatalf("TTL %v", c.lifetime())
			}
			if qtype != dns.TypeSRV {
				addresses(answer{records: rrs})
			}
		}
		referral(m)
	})
	for _, s := range []script{good, truncated(nil), failing(dns.RcodeNameError)} {
		target.Add(s(q, false)[0])
	}
	target.Add(inflated(q))
	target.Add([]byte{})
	return target
}

func FuzzDecode(f *testing.F)      { decodeTarget().Fuzz(f) }
func TestStormDecode(t *testing.T) { decodeTarget().Storm(t) }
