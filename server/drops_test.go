package server

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// dropCounts returns how many datagrams a worker and its tenants dropped, by reason.
func dropCounts(w *worker) map[string]uint64 {
	counts := make(map[string]uint64)
	add := func(name string, n uint64) {
		if n > 0 {
			counts[name] += n
		}
	}
	for r := range reasonCount {
		add(r.String(), w.counts.dropped[r].Load())
	}
	for _, t := range w.registry.tenants() {
		for r := range reasonCount {
			add(r.String(), t.state.counts.dropped[r].Load())
		}
		for v := range t.state.counts.verdicts {
			if v := limiter.Verdict(v); v.Dropped() {
				add(v.String(), t.state.counts.verdicts[v].Load())
			}
		}
	}
	return counts
}

// drops shows dropCounts for a message.
func drops(w *worker) string { return fmt.Sprint(dropCounts(w)) }

// dropBench is what a case of TestEveryDrop works with: a worker with the tenants 7
// (AES), 8 (cookie) and 9 (none), and a client of each.
type dropBench struct {
	*worker
	clock             *fakeClock
	tenants           []Tenant
	aes, cookie, none *client
}

func newDropBench(t *testing.T) *dropBench {
	short := func(q *apikey.Quotas) { q.RateWindow = 1024 }
	keys := []apikey.Key{newKey(t, apikey.AuthAES, 7, short), newKey(t, apikey.AuthCookie, 8), newKey(t, apikey.AuthNone, 9)}
	rules := workerRules()
	rules.answerBytes = 1024
	b := &dropBench{clock: newFakeClock()}
	b.tenants = []Tenant{{Keys: keys[:1]}, {Keys: keys[1:2]}, {Keys: keys[2:]}}
	b.worker = newWorker(t, b.clock, rules, b.tenants...)
	b.aes, b.cookie, b.none = newClient(t, keys[0]), newClient(t, keys[1]), newClient(t, keys[2])
	for _, c := range []*client{b.aes, b.cookie, b.none} {
		c.header.Timestamp = b.clock.Now().Wall
	}
	return b
}

// limit gives every tenant a max_rate.
func (b *dropBench) limit(t *testing.T, rate int) {
	t.Helper()
	tenants := slices.Clone(b.tenants)
	for i := range tenants {
		tenants[i].MaxRate = rate
	}
	if _, err := b.registry.set(b.clock.Now(), tenants); err != nil {
		t.Fatal(err)
	}
}

// answered hands in a datagram that must be answered.
func (b *dropBench) answered(t *testing.T, datagram []byte) {
	t.Helper()
	if b.ask(datagram) == nil {
		t.Fatalf("no answer; dropped: %s", drops(b.worker))
	}
}

// Every reason for which a datagram is dropped, provoked: no answer, this reason
// counted once, and no other.
func TestEveryDrop(t *testing.T) {
	plain := func(c *client) []byte { return c.request(checkout(1)) }
	patched := func(c *client, at int, v ...byte) []byte {
		b := plain(c)
		copy(b[at:], v)
		return b
	}
	cases := []struct {
		reason, name string
		datagram     func(t *testing.T, b *dropBench) []byte
	}{
		{"too_long", "1201 bytes", func(_ *testing.T, b *dropBench) []byte {
			return append(plain(b.none), make([]byte, wire.MaxDatagram+1-len(plain(b.none)))...)
		}},
		{"envelope", "nothing", func(*testing.T, *dropBench) []byte { return nil }},
		{"envelope", "noise", func(*testing.T, *dropBench) []byte { return []byte("GET / HTTP/1.1\r\n\r\n") }},
		{"envelope", "cut", func(_ *testing.T, b *dropBench) []byte { return plain(b.cookie)[:75] }},
		{"envelope", "cookie of another size", func(_ *testing.T, b *dropBench) []byte { return patched(b.cookie, 42, 35) }},
		{"envelope", "unknown mode", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 40, 0) }},
		{"unknown_key", "key 1007", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 4, 0xef, 3) }},
		{"mode", "none for AES", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 4, 7) }},
		{"mode", "cookie for AES", func(_ *testing.T, b *dropBench) []byte { return patched(b.cookie, 4, 7) }},
		{"mode", "AES for none", func(_ *testing.T, b *dropBench) []byte { return patched(b.aes, 4, 9) }},
		{"auth", "wrong cookie", func(_ *testing.T, b *dropBench) []byte { return patched(b.cookie, 44, 0xff, 0xff) }},
		{"auth", "wrong tag", func(_ *testing.T, b *dropBench) []byte { return patched(b.aes, 56, 0xff, 0xff) }},
		{"auth", "another identity", func(_ *testing.T, b *dropBench) []byte { return patched(b.aes, 12, 0xff) }},
		{"auth", "another timestamp", func(_ *testing.T, b *dropBench) []byte { return patched(b.aes, 28, 0xff) }},
		{"max_rate", "a second request", func(t *testing.T, b *dropBench) []byte {
			b.limit(t, 1)
			b.answered(t, plain(b.aes))
			b.aes.next()
			return plain(b.aes)
		}},
		{"max_rate", "a repeat", func(t *testing.T, b *dropBench) []byte {
			b.limit(t, 1)
			b.answered(t, plain(b.aes))
			return plain(b.aes)
		}},
		{"max_rate", "a report", func(t *testing.T, b *dropBench) []byte {
			b.limit(t, 1)
			b.answered(t, plain(b.aes))
			return b.aes.report(observation(1))
		}},
		{"max_rate", "noise in an authentic envelope", func(t *testing.T, b *dropBench) []byte {
			b.limit(t, 1)
			b.answered(t, plain(b.none))
			return plain(b.none)[:44]
		}},
		{"mgmt", "flag in none mode", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 37, 1) }},
		{"mgmt", "sealed flag", func(_ *testing.T, b *dropBench) []byte {
			b.aes.header.Mgmt = 1
			return plain(b.aes)
		}},
		{"malformed", "no PDU", func(_ *testing.T, b *dropBench) []byte { return plain(b.none)[:44] }},
		{"malformed", "unknown PDU", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 44, 0, 0) }},
		{"malformed", "size beyond the datagram", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 46, 0xff, 0xff) }},
		{"malformed", "more resources than fit", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 54, 3) }},
		{"malformed", "report with another count", func(_ *testing.T, b *dropBench) []byte {
			r := b.none.report(observation(1))
			r[52] = 2
			return r
		}},
		{"kind", "a response", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 44, 0x52, 0x52) }},
		{"stale", "5001 ms late", func(_ *testing.T, b *dropBench) []byte {
			b.aes.header.Timestamp = b.clock.Now().Wall
			b.clock.advance(5001 * time.Millisecond)
			return plain(b.aes)
		}},
		{"stale", "5001 ms early", func(_ *testing.T, b *dropBench) []byte {
			b.aes.header.Timestamp = b.clock.Now().Wall + 5001
			return plain(b.aes)
		}},
		{"stale", "the far future", func(_ *testing.T, b *dropBench) []byte {
			b.aes.header.Timestamp = 1<<64 - 1
			return plain(b.aes)
		}},
		{"ttl", "above the quota", func(_ *testing.T, b *dropBench) []byte {
			r := checkout(1)
			r.DedupTTL = 301
			return b.aes.request(r)
		}},
		{"ttl", "0", func(_ *testing.T, b *dropBench) []byte { return patched(b.none, 48, 0, 0, 0, 0) }},
		{"window", "above the quota", func(_ *testing.T, b *dropBench) []byte {
			r := checkout(1)
			r.Resources[0].Window = 1025
			return b.aes.request(r)
		}},
		{"mismatch", "more tokens in a repeat", func(t *testing.T, b *dropBench) []byte {
			b.answered(t, plain(b.aes))
			return b.aes.request(checkout(2))
		}},
		{"replayed", "after the TTL", func(t *testing.T, b *dropBench) []byte {
			datagram := plain(b.aes)
			b.answered(t, datagram)
			b.clock.advance(60 * time.Millisecond)
			return datagram
		}},
		{"replayed", "a report", func(t *testing.T, b *dropBench) []byte {
			datagram := b.aes.report(observation(1))
			b.ask(datagram)
			return datagram
		}},
		{"floor", "from before the start", func(_ *testing.T, b *dropBench) []byte {
			b.aes.header.Timestamp = testTime // when the tenant came; a second ago
			return plain(b.aes)
		}},
		{"no_answer", "forgotten for want of memory", func(t *testing.T, b *dropBench) []byte {
			datagram := plain(b.none)
			b.answered(t, datagram)
			for range 200 {
				b.none.next()
				b.answered(t, plain(b.none))
			}
			return datagram
		}},
		{"answer", "a sealer that cannot seal", func(_ *testing.T, b *dropBench) []byte {
			b.sealer = new(wire.Sealer)
			return plain(b.aes)
		}},
	}
	provoked := map[string]bool{dropSource.String(): true, dropLate.String(): true} // by TestSources and TestLate
	for _, c := range cases {
		provoked[c.reason] = true
		t.Run(c.reason+" "+c.name, func(t *testing.T) {
			b := newDropBench(t)
			datagram := c.datagram(t, b)
			before := slices.Clone(datagram)
			counted := dropCounts(b.worker)
			if len(counted) != 0 {
				t.Fatalf("dropped before the case: %v", counted)
			}
			if answer := b.ask(datagram); answer != nil {
				t.Errorf("answered with %x", answer)
			}
			if got := drops(b.worker); got != fmt.Sprintf("map[%s:1]", c.reason) {
				t.Errorf("counted %s, want %s once", got, c.reason)
			}
			if !slices.Equal(datagram, before) {
				t.Error("the datagram was changed")
			}
		})
	}
	for _, reason := range allReasons() {
		if !provoked[reason] {
			t.Errorf("nothing provokes %q", reason)
		}
	}
}

// allReasons are the values that the metrics' label `reason` can have.
func allReasons() []string {
	reasons := slices.Clone(reasonNames[:])
	for v := range verdictCount {
		if v := limiter.Verdict(v); v.Dropped() {
			reasons = append(reasons, v.String())
		}
	}
	return reasons
}

// Every verdict of the engine is counted: verdictCount leaves none out.
func TestEveryVerdictHasACounter(t *testing.T) {
	named := func(v limiter.Verdict) bool { return !strings.HasPrefix(v.String(), "Verdict(") }
	for v := range verdictCount {
		if v := limiter.Verdict(v); v > 0 && !named(v) {
			t.Errorf("%v has no name", v)
		}
	}
	for v := verdictCount; v < 256; v++ {
		if v := limiter.Verdict(v); named(v) {
			t.Errorf("%v is not counted", v)
		}
	}
	seen := make(map[string]bool)
	for _, reason := range allReasons() {
		if reason == "" || seen[reason] {
			t.Errorf("the reason %q is not alone", reason)
		}
		seen[reason] = true
	}
}

// An answer to these would go nowhere, or to everybody.
func TestSources(t *testing.T) {
	for _, from := range []string{"192.0.2.1:0", "0.0.0.0:9", "[::]:9"} {
		b := newDropBench(t)
		datagram := b.aes.request(checkout(1))
		if answer := b.askFrom(netip.MustParseAddrPort(from), datagram); answer != nil {
			t.Errorf("%s is answered", from)
		}
		if got := drops(b.worker); got != "map[source:1]" {
			t.Errorf("%s: counted %s", from, got)
		}
	}
	b := newDropBench(t)
	if answer := b.askFrom(netip.AddrPort{}, b.aes.request(checkout(1))); answer != nil {
		t.Error("nobody is answered")
	}
}

// What is dropped has no effect: nothing is consumed and no identity is remembered.
func TestDropsChangeNothing(t *testing.T) {
	b := newDropBench(t)
	for _, c := range []*client{b.aes, b.cookie, b.none} {
		c.header.Mgmt = 1
		b.ask(c.request(checkout(10)))
		b.ask(c.report(observation(1000)))
		c.header.Mgmt = 0
		c.header.Timestamp -= 100_000
		b.ask(c.request(checkout(10)))
		b.ask(c.report(observation(1000)))
		c.header.Timestamp += 100_000
	}
	for id, tenant := range maps.All(b.registry.tenants()) {
		if st := tenant.state.stats(); st.Buckets+st.Trackers+st.Identities+st.Answers != 0 {
			t.Errorf("tenant %d has state: %+v", id, st)
		}
	}
	if r := b.aes.open(b.ask(b.aes.request(checkout(10))), wire.Layout2); !r.granted() {
		t.Error("10 of 10 are not granted afterwards")
	}
}

// A tenant over its quota of buckets gets an ordinary rejection, one over its quota of
// trackers a guard that passes.
func TestQuotas(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.RateBuckets, q.LatencyServices = 1, 1 })
	w := newWorker(t, newFakeClock(), workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	if r := c.open(w.ask(c.request(checkout(1))), wire.Layout2); !r.granted() {
		t.Fatal("the first bucket has no room")
	}
	c.next()
	other := checkout(1)
	other.Resources[0].Bucket = ident.Bucket("other", 1000, 10)
	if r := c.open(w.ask(c.request(other)), wire.Layout2); r.granted() || r.view.Resource(0).Tokens != 1 {
		t.Errorf("a bucket above the quota: %+v", r.view.Resource(0))
	}
	c.next()
	one, two := observation(500), observation(500)
	two.Tracker = ident.Tracker("other", 10_000, 32, 1)
	w.ask(c.report(one, two))
	if n := w.registry.tenants()[7].state.stats().DroppedBlocks; n != 1 {
		t.Errorf("%d observations dropped, want 1", n)
	}
	c.next()
	both := checkout(0)
	both.Guards = append(both.Guards, both.Guards[0])
	both.Guards[1].Tracker = two.Tracker
	r := c.open(w.ask(c.request(both)), wire.Layout2)
	if r.view.Guard(0).Latency != 500 || r.view.Guard(1).Latency != 0 {
		t.Errorf("guards are at %d and %d ms, want 500 and 0", r.view.Guard(0).Latency, r.view.Guard(1).Latency)
	}
}

// Labels are counted by what can be shown of them, in decisions only.
func TestLabelsOfDecisions(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.MetricsLabels = 2 })
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	c.header.Timestamp = clock.Now().Wall
	for i, label := range []string{"api", "a\x00\xff", "api", "third", ""} {
		c.next()
		req := checkout(5)
		req.Label = label
		b := c.request(req)
		w.ask(b)
		if i == 0 {
			w.ask(b)
		}
	}
	req := checkout(5)
	req.Label = "api"
	c.header.Timestamp = 0
	w.ask(c.request(req)) // stale
	var got []string
	for _, row := range w.registry.tenants()[7].state.labels.snapshot() {
		for v := range row.counts {
			if n := row.counts[v].Load(); n > 0 {
				got = append(got, fmt.Sprintf("%s %v %d", row.label, limiter.Verdict(v), n))
			}
		}
	}
	slices.Sort(got)
	want := []string{`a\x00\xff granted 1`, "api granted 1", "api rejected 1", "api repeat_granted 1", "overflow rejected 1"}
	if !slices.Equal(got, want) {
		t.Errorf("counted\n%q, want\n%q", got, want)
	}
}

// The word of a PDU sits where TestEveryDrop patches it.
func TestPatchedPlaces(t *testing.T) {
	b := newDropBench(t)
	d := b.none.request(checkout(1))
	if binary.LittleEndian.Uint64(d[4:]) != 9 || binary.LittleEndian.Uint16(d[44:]) != 0x5452 ||
		binary.LittleEndian.Uint32(d[48:]) != 60 || binary.LittleEndian.Uint16(d[54:]) != 1 {
		t.Errorf("the format is another than the cases assume: %x", d)
	}
}

// What the server is told to bound bounds every tenant, whatever its key allows.
func TestServerBounds(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7) // 300 ms, 4096 labels
	rules := workerRules()
	rules.dedupCap, rules.skew, rules.maxLabels = 100, 50, 1
	clock := newFakeClock()
	w := newWorker(t, clock, rules, Tenant{Keys: []apikey.Key{key}})
	c := newClient(t, key)
	ask := func(ttl uint32, late time.Duration, label string) bool {
		c.next()
		c.header.Timestamp = clock.Now().Wall - uint64(late.Milliseconds())
		req := checkout(0)
		req.DedupTTL, req.Label = ttl, label
		return w.ask(c.request(req)) != nil
	}
	for _, s := range []struct {
		ttl  uint32
		late time.Duration
		want bool
	}{{100, 0, true}, {101, 0, false}, {100, 50 * time.Millisecond, true}, {100, 51 * time.Millisecond, false}} {
		if got := ask(s.ttl, s.late, "a"); got != s.want {
			t.Errorf("TTL %d ms, %v late: answered %v, want %v", s.ttl, s.late, got, s.want)
		}
	}
	ask(100, 0, "b")
	got := labelCounts(&w.registry.tenants()[7].state.labels, limiter.Granted)
	if got["a"] != 2 || got["overflow"] != 1 || len(got) != 2 {
		t.Errorf("labels are %v, want a:2 overflow:1", got)
	}
}

// Guards go by the tenant's own estimator, also after it is changed.
func TestEstimatorOfTenant(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	tenant := func(e limiter.Estimator) Tenant { return Tenant{Keys: []apikey.Key{key}, Estimator: e} }
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), tenant(limiter.Min))
	c := newClient(t, key)
	w.ask(c.report(observation(10), observation(20), observation(99)))
	for _, s := range []struct {
		estimator limiter.Estimator
		want      uint32
	}{{limiter.Min, 10}, {limiter.P50, 20}, {limiter.P99, 99}, {limiter.Mean, 43}} {
		if _, err := w.registry.set(clock.Now(), []Tenant{tenant(s.estimator)}); err != nil {
			t.Fatal(err)
		}
		c.next()
		if r := c.open(w.ask(c.request(checkout(0))), wire.Layout2); r.view.Guard(0).Latency != s.want {
			t.Errorf("%v: %d ms, want %d", s.estimator, r.view.Guard(0).Latency, s.want)
		}
	}
}
