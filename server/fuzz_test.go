package server

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/internal/vectors"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// datagramTarget throws any bytes at the whole path of a datagram: raw, as what a socket has read, or
// as the PDU of a datagram that is authentic, once in each mode. Each comes twice, so that repeats
// are met as well. A datagram has all that [front.hand] says, and what is forged gets no answer. What
// became of all datagrams is added up in sum.
func datagramTarget(tb testing.TB, sum *outcome) *storm.Target {
	var keys []apikey.Key
	for i, auth := range allModes {
		keys = append(keys, newKey(tb, auth, uint64(i+101)))
	}
	own := len(keys)
	for _, v := range vectors.Requests(tb) {
		if k := anyKey(tb, v.Key); !slices.ContainsFunc(keys, k.Equal) {
			keys = append(keys, k)
		}
	}
	probes := newProbes(tb, keys)
	var f *front
	target := storm.New3("FuzzDatagram", func(t testing.TB, b []byte, raw bool, at uint64) {
		// What is sealed has a timestamp to which the clock must go. Back it goes by another start, as
		// there the floor would be above; that is much work, so only some go far.
		const hour = 3_600_000
		at %= 1 << 41
		sealed := raw && len(b) > 41 && b[40] == 'A' && b[41] == 'E'
		if f != nil && at%8 > 0 && (at > f.clock.now.Wall+hour || at+hour < f.clock.now.Wall) {
			at = f.clock.now.Wall
		}
		if f == nil || at > f.clock.now.Wall+hour || at+hour < f.clock.now.Wall || sealed && at+1000 < f.clock.now.Wall {
			f = newFront(t, max(at, 6000)-6000, probes, sum)
			f.clock.now.Wall = at
		}
		if raw {
			f.clock.now.Wall = max(f.clock.now.Wall, at)
			f.twice(t, b)
			if len(b) >= 36 { // of now, with an identity that was never there
				copy(b[12:28], f.header().UniqueID[:])
				binary.LittleEndian.PutUint64(b[28:], f.next.Timestamp)
				f.hand(t, b)
			}
			return
		}
		for _, p := range f.probes[:own] {
			datagram := p.wrap(f.header(), b)
			f.twice(t, datagram)
			if p.auth != apikey.AuthNone && len(datagram) > 50 {
				datagram[50] ^= 1 // the cookie or the nonce
				if answer := f.hand(t, datagram); answer != nil {
					t.Fatalf("%v: a forged datagram is answered with %x", p.auth, answer)
				}
			}
		}
	})
	target.Fresh(func(testing.TB) { f = nil })
	target.Aim(aimDatagram)
	for _, v := range vectors.Requests(tb) {
		target.Add([]byte(v.PDU), false, v.Time)
		target.Add([]byte(v.Datagram), true, v.Time)
	}
	for _, v := range vectors.Reports(tb) {
		target.Add([]byte(v.PDU), false, v.Time)
		target.Add([]byte(v.Datagram), true, v.Time)
	}
	for _, v := range vectors.Traps(tb) {
		target.Add([]byte(v.PDU), false, uint64(testTime))
	}
	for _, key := range keys[:own] {
		c := newClient(tb, key)
		target.Add(c.request(checkout(1)), true, uint64(testTime))
		c.next()
		target.Add(c.report(observation(1)), true, uint64(testTime))
	}
	return target
}

func FuzzDatagram(f *testing.F) { datagramTarget(f, new(outcome)).Fuzz(f) }

func TestStormDatagram(t *testing.T) {
	var sum outcome
	datagramTarget(t, &sum).Storm(t)
	sum.checkMixed(t)
}

// aimDatagram finds the fields of what is one or the other.
func aimDatagram(b []byte, at []int) []int {
	if len(b) > 1 && b[0] == 'R' && b[1] == 'L' {
		return storm.Datagram(b, at)
	}
	return storm.PDU(b, at)
}

func (f *front) twice(t testing.TB, datagram []byte) {
	for range 2 {
		f.hand(t, datagram)
		f.clock.advance(time.Millisecond)
	}
}

// front is the whole path of a datagram, and what judges it from outside.
type front struct {
	w       *worker
	clock   *fakeClock
	probes  []*probe
	outcome outcome // of everything so far
	sum     *outcome
	next    wire.Header
	made    uint64 // headers
	shadow  bool   // tenants are in shadow mode: what is answered is not what is counted
	kept    []byte
	scratch wire.Scratch
	asked   wire.RequestView
	// judged is the last answer that hand has seen, valid until the next.
	judged wire.ResponseView
}

// newFront makes a worker whose start was at a time, in Unix ms, with a tenant for each key ID of
// the probes.
func newFront(tb testing.TB, start uint64, probes []*probe, sum *outcome) *front {
	clock := &fakeClock{now: limiter.Time{Mono: 1, Wall: start}}
	var keys []apikey.Key
	for _, p := range probes {
		keys = append(keys, p.key)
	}
	return &front{clock: clock, w: newWorker(tb, clock, workerRules(), tenantsOf(keys)...), probes: probes, sum: sum}
}

// tenantsOf gives keys of one ID to one tenant.
func tenantsOf(keys []apikey.Key) (tenants []Tenant) {
	for _, k := range keys {
		same := func(t Tenant) bool { return t.Keys[0].ID() == k.ID() }
		if i := slices.IndexFunc(tenants, same); i >= 0 {
			tenants[i].Keys = append(tenants[i].Keys, k)
		} else {
			tenants = append(tenants, Tenant{Keys: []apikey.Key{k}})
		}
	}
	return tenants
}

// header returns a header of now with an identity that was never there.
func (f *front) header() *wire.Header {
	f.made++
	binary.LittleEndian.PutUint64(f.next.UniqueID[:8], f.made*0x9e3779b97f4a7c15) // no two are a few bits apart
	binary.LittleEndian.PutUint64(f.next.UniqueID[8:], f.made*0xbf58476d1ce4e5b9)
	f.next.Timestamp, f.next.Steering, f.next.Mgmt = f.clock.now.Wall, 0, 0
	return &f.next
}

// hand hands a datagram in and returns the answer, which is valid until the next. Whatever the
// datagram is: it stays as it was, and it is counted once, as answered, as an executed report, or
// under one reason for which it was dropped. An answer is never longer than its request, opens with
// the key that opens the request, and answers exactly that.
func (f *front) hand(t testing.TB, datagram []byte) []byte {
	f.kept = append(f.kept[:0], datagram...)
	answer := f.w.ask(datagram)
	if !bytes.Equal(datagram, f.kept) {
		t.Fatal("the datagram was changed")
	}
	before := f.outcome
	f.outcome = outcomeOf(f.w)
	now := f.outcome
	f.sum.granted += now.granted - before.granted
	f.sum.rejected += now.rejected - before.rejected
	f.sum.observed += now.observed - before.observed
	f.sum.dropped += now.dropped - before.dropped
	switch {
	case now.all() != before.all()+1:
		t.Fatalf("one datagram, and the counts go from %+v to %+v", before, now)
	case (answer != nil) != (now.granted+now.rejected > before.granted+before.rejected):
		t.Fatalf("an answer of %d bytes, and the counts go from %+v to %+v", len(answer), before, now)
	case answer != nil:
		f.judge(t, datagram, answer, now.granted > before.granted)
	}
	return answer
}

// judge holds an answer against its request.
func (f *front) judge(t testing.TB, datagram, answer []byte, granted bool) {
	if len(answer) > len(datagram) {
		t.Fatalf("%d bytes are answered with %d", len(datagram), len(answer))
	}
	var q, a wire.Envelope
	if err := wire.ParseEnvelope(datagram, &q); err != nil {
		t.Fatalf("answered, and not even an envelope: %v", err)
	}
	p, pdu := f.opener(&q)
	if p == nil {
		t.Fatalf("not authentic, and answered: %x", datagram)
	}
	if err := wire.ParseRequest(pdu, &f.asked); err != nil {
		t.Fatalf("no request, and answered: %v", err)
	}
	if err := wire.ParseEnvelope(answer, &a); err != nil {
		t.Fatal(err)
	}
	opened, err := p.credential.Open(&a, &p.scratch)
	if err != nil {
		t.Fatalf("the answer does not open: %v", err)
	}
	if err := wire.ParseResponse(opened, f.asked.Layout, &f.judged); err != nil {
		t.Fatal(err)
	}
	if h := a.Header; h.KeyID != uint64(testServer) || h.UniqueID != q.Header.UniqueID || h.Timestamp != f.clock.Now().Wall || h.Mgmt != 0 {
		t.Fatalf("the answer's header is %+v", h)
	}
	f.compare(t, granted)
}

// opener returns who can have sent a datagram, and its PDU.
func (f *front) opener(e *wire.Envelope) (*probe, []byte) {
	for _, p := range f.probes {
		if p.credential.KeyID() != e.Header.KeyID {
			continue
		}
		if pdu, err := p.credential.Open(e, &f.scratch); err == nil {
			return p, pdu
		}
	}
	return nil, nil
}

// compare holds the blocks of an answer against those of its request, in their order.
func (f *front) compare(t testing.TB, granted bool) {
	q, a := &f.asked, &f.judged
	if a.Guards() != q.Guards() || a.Resources() != q.Resources() || len(a.Rest()) > 0 {
		t.Fatalf("asked for %d guards and %d resources, answered %d and %d", q.Guards(), q.Resources(), a.Guards(), a.Resources())
	}
	passes := true
	for i := range q.Guards() {
		asked, got := q.Guard(i), a.Guard(i)
		passes = passes && got.Latency < got.Threshold
		if got.Latency = asked.Latency; got != asked {
			t.Fatalf("guard %d is %+v, asked was %+v", i, got, asked)
		}
	}
	for i := range q.Resources() {
		asked, got := q.Resource(i), a.Resource(i)
		passes = passes && got.Tokens == 0
		if got.Bucket != asked.Bucket || got.Window != asked.Window || got.Tokens > asked.Tokens {
			t.Fatalf("resource %d is %+v, asked was %+v", i, got, asked)
		}
		if got.Rate > asked.Rate {
			t.Fatalf("resource %d has a rate of %d over its limit of %d", i, got.Rate, asked.Rate)
		}
	}
	if passes != granted && !f.shadow {
		t.Fatalf("the answer reads as granted: %v; it is counted as granted: %v", passes, granted)
	}
}

// outcome is what became of datagrams.
type outcome struct{ granted, rejected, observed, dropped uint64 }

func (o *outcome) all() uint64 { return o.granted + o.rejected + o.observed + o.dropped }

// checkMixed fails a storm in which one of the outcomes is rare: it would prove little.
func (o *outcome) checkMixed(t *testing.T) {
	t.Helper()
	t.Logf("datagrams: %+v", *o)
	if least := min(o.granted, o.rejected, o.observed, o.dropped); least < o.all()/200 {
		t.Errorf("of %d datagrams only %d had one of the outcomes: %+v", o.all(), least, *o)
	}
}

// outcomeOf adds up the counters of a worker and its tenants.
func outcomeOf(w *worker) (o outcome) {
	for r := range reasonCount {
		o.dropped += w.counts.dropped[r].Load()
	}
	for _, t := range w.registry.tenants() {
		c := &t.state.counts
		for r := range reasonCount {
			o.dropped += c.dropped[r].Load()
		}
		for v := range c.verdicts {
			n := c.verdicts[v].Load()
			switch limiter.Verdict(v) {
			case limiter.Granted, limiter.RepeatGranted:
				o.granted += n
			case limiter.Rejected, limiter.RepeatRejected:
				o.rejected += n
			case limiter.Observed:
				o.observed += n
			default:
				o.dropped += n
			}
		}
	}
	return o
}
