package server

import (
	"bytes"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/wire"
)

// trafficTarget makes bytes into traffic: requests and reports that are valid, in all modes and both
// layouts, with numbers at their bounds and IDs that meet; the same again; the same damaged after it
// was sealed; time that passes; tenants that are limited, shadowed, or gone. Each datagram has all
// that [front.hand] says; what is due an answer gets one, and what is not gets none.
func trafficTarget(tb testing.TB, sum *outcome) *storm.Target {
	var keys []apikey.Key
	for i, auth := range allModes {
		keys = append(keys, newKey(tb, auth, uint64(i+1), func(q *apikey.Quotas) { q.RateWindow, q.LatencyServices = 4096, 4 }))
	}
	probes := newProbes(tb, keys)
	var tr *traffic
	target := storm.New("FuzzTraffic", func(t testing.TB, recipe []byte) {
		if tr == nil {
			tr = &traffic{front: newFront(t, testTime, probes, sum), keys: keys}
		}
		tr.recipe = recipe
		for range 16 {
			if len(tr.recipe) == 0 {
				return
			}
			tr.act(t)
		}
	})
	target.Fresh(func(testing.TB) { tr = nil })
	rng := rand.New(rand.NewPCG(1, 1))
	for range 64 {
		recipe := make([]byte, 20+rng.IntN(200))
		for i := range recipe {
			recipe[i] = byte(rng.Uint32())
		}
		target.Add(recipe)
	}
	return target
}

func FuzzTraffic(f *testing.F) { trafficTarget(f, new(outcome)).Fuzz(f) }

func TestStormTraffic(t *testing.T) {
	var sum outcome
	trafficTarget(t, &sum).Storm(t)
	sum.checkMixed(t)
}

// traffic reads what to do from a recipe.
type traffic struct {
	*front
	keys    []apikey.Key
	recipe  []byte
	special bool // tenants are such that it is not plain what is due
	gone    bool // one was away for a while
	past    [8]sent
	at      int

	request      wire.Request
	observations []wire.Observation
}

// sent is a datagram that was handed in.
type sent struct {
	probe    *probe
	datagram []byte
}

// byte returns the recipe's next byte, and zeros behind its end.
func (tr *traffic) byte() byte {
	if len(tr.recipe) == 0 {
		return 0
	}
	b := tr.recipe[0]
	tr.recipe = tr.recipe[1:]
	return b
}

// pick returns one of some numbers.
func pick[T any](tr *traffic, from ...T) T { return from[int(tr.byte())%len(from)] }

func (tr *traffic) act(t testing.TB) {
	op := tr.byte()
	p := tr.probes[int(op&3)%len(tr.probes)]
	layout := wire.Layout1 + wire.Layout(op>>2&1)
	switch op >> 3 {
	case 0, 1:
		tr.clock.advance(pick(tr, 0, time.Nanosecond, time.Millisecond, 60*time.Millisecond, 300*time.Millisecond, time.Second, 6*time.Second))
	case 2, 3, 4, 5:
		if past := &tr.past[tr.byte()%8]; past.datagram != nil {
			tr.hand(t, past.datagram)
		}
	case 6, 7, 8, 9, 10, 11:
		tr.damage(t, &tr.past[tr.byte()%8])
	case 12, 13, 14, 15, 16, 17:
		tr.report(t, p, layout)
	case 18:
		tr.reload(t)
	default:
		tr.ask(t, p, layout)
	}
}

// ask sends a request, and knows whether it is due an answer, but for stamps that are a little old:
// there it depends on the floor.
func (tr *traffic) ask(t testing.TB, p *probe, layout wire.Layout) {
	h := tr.header()
	r := &tr.request
	r.Layout, r.Guards, r.Resources = layout, r.Guards[:0], r.Resources[:0]
	r.DedupTTL = pick[uint32](tr, 60, 300, 1, 60, 301, math.MaxUint32)
	r.Label = pick(tr, "", "", "a", "b\xff", "four", "\x00\x1b[31m")
	skew := pick[int64](tr, 0, 0, 0, 0, 1, -1, 5000, -5000, 5001, -5001, math.MinInt64)
	h.Timestamp = uint64(int64(h.Timestamp) + skew)
	h.Steering, h.Mgmt = pick[uint8](tr, 0, 1), pick[uint8](tr, 0, 0, 0, 0, 0, 0, 0, 1)
	due := r.DedupTTL <= 300 && skew >= -5000 && skew <= 5000 && h.Mgmt == 0
	for range pick(tr, 0, 0, 1, 2, 3, 40) {
		r.Guards = append(r.Guards, tr.guard())
	}
	for range pick(tr, 0, 1, 1, 2, 3, 40) {
		r.Resources = append(r.Resources, tr.resource())
		due = due && r.Resources[len(r.Resources)-1].Window <= 4096
	}
	b, err := p.credential.AppendRequest(tr.space(p), p.sealer, h, r)
	if err != nil {
		return // more than a datagram holds
	}
	tr.past[tr.at].datagram = b
	answer := tr.hand(t, b)
	if unknown := due && (tr.special || skew < 0); (answer != nil) != due && !unknown {
		t.Fatalf("answered with %d bytes, due an answer: %v; dropped so far: %s\n%+v\n%+v", len(answer), due, drops(tr.w), h, r)
	}
}

func (tr *traffic) guard() wire.Guard {
	return wire.Guard{
		Tracker:    tr.id(),
		TTL:        pick[uint32](tr, 1000, 1, 0, math.MaxUint32),
		MaxSamples: pick[uint32](tr, 8, 1, 0, math.MaxUint32),
		BufferSize: pick[uint32](tr, 8, 1, 0, math.MaxUint32),
		MinSamples: pick[uint32](tr, 0, 1, 3, math.MaxUint32),
		Threshold:  pick[uint32](tr, 50, 1, 0, math.MaxUint32),
	}
}

func (tr *traffic) resource() wire.Resource {
	return wire.Resource{
		Bucket: tr.id(),
		Window: pick[uint32](tr, 1000, 1, 0, 4096, 4096, 4097, math.MaxUint32),
		Rate:   pick[uint32](tr, 10, 1, 0, 1000, math.MaxUint32),
		Tokens: pick[uint16](tr, 1, 0, 2, 1000, math.MaxUint16),
	}
}

// id returns one of few IDs, now and then one of many.
func (tr *traffic) id() ident.ID {
	b := tr.byte()
	if b < 200 {
		b &= 3
	}
	return ident.ID{b}
}

func (tr *traffic) report(t testing.TB, p *probe, layout wire.Layout) {
	h := tr.header()
	tr.observations = tr.observations[:0]
	for range pick(tr, 1, 0, 2, 3, 32) {
		g := tr.guard()
		tr.observations = append(tr.observations, wire.Observation{
			Tracker: g.Tracker, TTL: g.TTL, MaxSamples: g.MaxSamples, BufferSize: g.BufferSize, MinSamples: g.MinSamples,
			Latency: pick[uint32](tr, 1, 49, 50, 0, math.MaxUint32),
		})
	}
	b, err := p.credential.AppendReport(tr.space(p), p.sealer, h, layout, tr.observations)
	if err != nil {
		return
	}
	tr.past[tr.at].datagram = b
	before := tr.outcome.observed
	if tr.hand(t, b); tr.outcome.observed != before+1 && !tr.special {
		t.Fatalf("a fresh report is dropped: %s", drops(tr.w))
	}
}

// space returns where the next datagram goes, in place of the oldest of the past.
func (tr *traffic) space(p *probe) []byte {
	tr.at = (tr.at + 1) % len(tr.past)
	s := &tr.past[tr.at]
	s.probe = p
	b := s.datagram[:0]
	s.datagram = nil
	return b
}

// damage hands in a datagram of the past with some bytes changed. In AES mode every byte of it is
// authentic or it is nothing; in cookie mode the cookie is.
func (tr *traffic) damage(t testing.TB, past *sent) {
	if past.datagram == nil {
		return
	}
	b := append([]byte{}, past.datagram...)
	cookie := false
	for range 1 + tr.byte()%4 {
		at := (int(tr.byte())<<8 | int(tr.byte())) % len(b)
		b[at] ^= tr.byte()
	}
	switch tr.byte() % 8 {
	case 0:
		b = b[:len(b)-1-int(tr.byte())%len(b)]
	case 1:
		b = append(b, past.datagram[:min(int(tr.byte()), len(past.datagram))]...)
	}
	same := bytes.Equal(b, past.datagram)
	if past.probe.auth == apikey.AuthCookie && len(b) >= 76 {
		cookie = !bytes.Equal(b[40:76], past.datagram[40:76]) && b[2] == 40 && b[3] == 0
	}
	answer := tr.hand(t, b)
	if answer != nil && (cookie || past.probe.auth == apikey.AuthAES && !same) {
		t.Fatalf("%v: a damaged datagram is answered:\n%x, was\n%x", past.probe.auth, b, past.datagram)
	}
}

// reload changes the tenants, so that it is not plain any more what is due, or makes them what they
// were; seldom, as it is much work. What was counted of tenants that go goes with them.
func (tr *traffic) reload(t testing.TB) {
	if tr.byte()%8 != 0 {
		return
	}
	tenants := tenantsOf(tr.keys)
	change := tr.byte() % 16
	for i := range tenants {
		switch change {
		case 0, 1:
			tenants[i].MaxRate = 2
		case 2, 3:
			tenants[i].Shadow = true
		case 4, 5:
			tenants[i].NoPacing = true
		}
	}
	if change == 6 { // its identities are of another engine when it comes back
		tr.gone = true
		tenants = tenants[1:]
	}
	shadow := change == 2 || change == 3
	tr.shadow = tr.shadow || shadow // repeats are answered in the mode of then
	tr.special = tr.gone || change < 2
	if bad := checkTenants(tenants, netip.AddrPort{}); bad != nil {
		t.Fatal(bad)
	}
	if _, err := tr.w.registry.set(tr.clock.now, tenants); err != nil {
		t.Fatal(err)
	}
	tr.outcome = outcomeOf(tr.w)
}
