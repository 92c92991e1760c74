package server

import (
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// attacker is a client with a valid key and no good in mind. What it makes is new each time: a
// million different things, if it is asked often enough.
type attacker struct {
	*client
	w    *worker
	buf  []byte
	made int // things so far
	from netip.AddrPort
}

func (a *attacker) number() uint32 {
	a.made++
	return uint32(a.made)
}

func (a *attacker) send(b []byte, err error) {
	if err != nil {
		a.tb.Fatal(err)
	}
	a.buf = b
	a.w.askFrom(a.from, b)
	a.next()
}

func (a *attacker) ask(r *wire.Request) {
	r.Layout = wire.Layout2
	if r.DedupTTL == 0 {
		r.DedupTTL = 300
	}
	a.send(a.credential.AppendRequest(a.buf[:0], a.sealer, &a.header, r))
}

func (a *attacker) tell(obs ...wire.Observation) {
	a.send(a.credential.AppendReport(a.buf[:0], a.sealer, &a.header, wire.Layout2, obs))
}

// numbered is the ID of a number.
func numbered(n uint32) ident.ID {
	return ident.ID{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
}

// What a datagram in AES mode holds at most.
const (
	mostResources    = 39
	mostGuards       = 30
	mostObservations = 34
)

// attacks are what an attacker does with one datagram, or two. Each is done often.
var attacks = []struct {
	name  string
	times int
	act   func(a *attacker)
}{
	{"buckets", 26_000, func(a *attacker) { // a million
		var r wire.Request
		for range mostResources {
			r.Resources = append(r.Resources, wire.Resource{Bucket: numbered(a.number()), Window: math.MaxUint32, Rate: math.MaxUint32, Tokens: math.MaxUint16})
		}
		a.ask(&r)
	}},
	{"buckets of one ID", 26_000, func(a *attacker) {
		var r wire.Request
		for range mostResources {
			n := a.number()
			r.Resources = append(r.Resources, wire.Resource{Window: math.MaxUint32 - n&0x3ff, Rate: math.MaxUint32 - n>>10, Tokens: 1})
		}
		a.ask(&r)
	}},
	{"groups", 10_000, func(a *attacker) { // as many as its buckets may have
		var r wire.Request
		for n := range uint32(mostResources) {
			r.Resources = append(r.Resources, wire.Resource{Bucket: numbered(n + mostResources*(a.number()%40)), Window: math.MaxUint32, Rate: math.MaxUint32, Tokens: 1})
		}
		a.ask(&r)
	}},
	{"trackers", 30_000, func(a *attacker) { // a million
		var obs []wire.Observation
		for range mostObservations {
			obs = append(obs, wire.Observation{Tracker: numbered(a.number()), TTL: math.MaxUint32, MaxSamples: math.MaxUint32, Latency: math.MaxUint32})
		}
		a.tell(obs...)
	}},
	{"samples", 10_000, func(a *attacker) { // of one tracker, hundreds of thousands
		obs := make([]wire.Observation, mostObservations)
		for i := range obs {
			obs[i] = wire.Observation{TTL: math.MaxUint32, MaxSamples: math.MaxUint32, Latency: a.number() * 2654435761}
		}
		a.tell(obs...)
	}},
	{"thresholds", 34_000, func(a *attacker) { // a million
		if a.made == 0 {
			a.tell(wire.Observation{TTL: math.MaxUint32, MaxSamples: 8, MinSamples: 1, Latency: 7})
		}
		var r wire.Request
		for range mostGuards {
			r.Guards = append(r.Guards, wire.Guard{TTL: math.MaxUint32, MaxSamples: 8, MinSamples: 1, Threshold: a.number()})
		}
		a.ask(&r)
	}},
	{"labels", 20_000, func(a *attacker) {
		a.ask(&wire.Request{Label: fmt.Sprintf("\x1b[2J\xff%0900d", a.number())})
	}},
	{"the largest requests", 20_000, func(a *attacker) { // that are rejected, so that nothing is ever in the way
		r := wire.Request{Resources: make([]wire.Resource, mostResources)}
		for i := range r.Resources {
			r.Resources[i] = wire.Resource{Bucket: numbered(uint32(i)), Window: 1000, Rate: 1, Tokens: 2}
		}
		a.ask(&r)
	}},
	{"identities", 60_000, func(a *attacker) { // to be remembered for as long as may be
		a.ask(&wire.Request{DedupTTL: 2000})
	}},
	{"over quotas", 20_000, func(a *attacker) {
		switch a.number() % 3 {
		case 0:
			a.ask(&wire.Request{DedupTTL: 2001 + a.number()})
		case 1:
			a.ask(&wire.Request{Resources: []wire.Resource{{Window: math.MaxUint32, Rate: 1, Tokens: 1}, {Window: math.MaxUint32, Rate: 0, Tokens: 1}}})
		default:
			a.ask(&wire.Request{Resources: []wire.Resource{{Bucket: numbered(1), Window: 1000, Rate: 10, Tokens: math.MaxUint16}}})
		}
	}},
	{"flows", 100_000, func(a *attacker) {
		n := a.number()
		a.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), uint16(n)|1)
		a.ask(new(wire.Request))
	}},
	{"junk under its key", 20_000, func(a *attacker) {
		b, err := a.credential.AppendRequest(a.buf[:0], a.sealer, &a.header, &wire.Request{Layout: wire.Layout2, DedupTTL: 1})
		if err != nil {
			a.tb.Fatal(err)
		}
		b[len(b)-1-a.made%12] ^= 1
		a.made++
		a.send(b, nil)
	}},
}

// neighborhood is a server with two tenants under a memory limit.
type neighborhood struct {
	w        *worker
	clock    *fakeClock
	attacker *attacker
	neighbor *client
	asked    int
}

const neighborhoodLimit = 48 << 20

func newNeighborhood(tb testing.TB) *neighborhood {
	tb.Helper()
	long := func(q *apikey.Quotas) { q.DedupTTL = 2000 }
	bad, good := newKey(tb, apikey.AuthAES, 1, long), newKey(tb, apikey.AuthAES, 2)
	rules := workerRules()
	rules.memoryLimit, rules.identities = neighborhoodLimit, 1<<15
	n := &neighborhood{clock: newFakeClock()}
	n.w = newWorker(tb, n.clock, rules, Tenant{Keys: []apikey.Key{bad}}, Tenant{Keys: []apikey.Key{good}})
	n.w.flows = newFlows()
	n.w.flows.count(0)
	n.attacker = &attacker{client: newClient(tb, bad), w: n.w, from: peer}
	n.neighbor = newClient(tb, good)
	return n
}

// pass lets a little time go by; whoever stamps a datagram knows.
func (n *neighborhood) pass() {
	n.clock.advance(time.Millisecond)
	n.neighbor.header.Timestamp = n.clock.Now().Wall
	n.attacker.header.Timestamp = n.clock.Now().Wall
}

// live is what the neighbor does at one time: requests near their limit, guards near their threshold,
// reports, and repeats. It returns the answers as they were sealed.
func (n *neighborhood) live() (answers []string) {
	n.asked++
	i := uint32(n.asked)
	n.neighbor.next()
	b := n.neighbor.request(&wire.Request{
		Layout: wire.Layout2, DedupTTL: 60, Label: fmt.Sprint("label ", i%5),
		Guards:    []wire.Guard{{Tracker: numbered(i % 3), TTL: 400, MaxSamples: 16, MinSamples: 2, Threshold: 50}},
		Resources: []wire.Resource{{Bucket: numbered(i % 7), Window: 50 + i%7, Rate: 20, Tokens: uint16(1 + i%4)}},
	})
	for range 1 + n.asked%2 {
		answer := n.w.ask(b)
		if answer == nil {
			return append(answers, "dropped: "+drops(n.w))
		}
		r := n.neighbor.open(answer, wire.Layout2)
		answers = append(answers, fmt.Sprintf("%+v %x", r.header, r.view.PDU()))
	}
	n.neighbor.next()
	n.w.ask(n.neighbor.report(wire.Observation{Tracker: numbered(i % 3), TTL: 400, MaxSamples: 16, MinSamples: 2, Latency: i * 7 % (40 + 60*(i/300%2))}))
	return answers
}

// Whatever a tenant with a valid key does, as often as it likes: another gets, at each time, the
// answers that it gets when it is alone, and the server holds no more memory than its start computed.
func TestAttacksLeaveTheNeighborAlone(t *testing.T) {
	const rounds = 2000
	var alone []string
	n := newNeighborhood(t)
	for range rounds {
		n.pass()
		alone = append(alone, n.live()...)
	}
	if o := outcomeOf(n.w); o.granted < rounds/4 || o.rejected < rounds/4 || o.dropped > 0 {
		t.Fatalf("the neighbor's life is dull: %+v", o)
	}
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			before := heapBytes()
			n := newNeighborhood(t)
			worst := int64(0)
			for _, tenant := range n.w.registry.tenants() {
				worst += tenant.room.worst()
			}
			if worst > neighborhoodLimit {
				t.Fatalf("the worst case is %d bytes under a limit of %d", worst, neighborhoodLimit)
			}
			at := 0
			for round := range rounds {
				n.pass()
				for done := attack.times * round / rounds; done < attack.times*(round+1)/rounds; done++ {
					attack.act(n.attacker)
				}
				for _, answer := range n.live() {
					if answer != alone[at] {
						t.Fatalf("round %d: the neighbor is answered\n%s, alone it is\n%s", round, answer, alone[at])
					}
					at++
				}
			}
			held := heapBytes() - before
			tenant := n.w.registry.tenants()[1]
			st := tenant.state.stats()
			if int64(st.Memory) > tenant.room.worst() || held > worst {
				t.Errorf("the attacker holds %d bytes of %d, the server %d of %d", st.Memory, tenant.room.worst(), held, worst)
			}
			t.Logf("held %.1f MB of %.1f MB: %+v", float64(held)/1e6, float64(worst)/1e6, st)
			runtime.KeepAlive(n)
		})
	}
}

// A datagram of an attacker holds its tenant's lock, and the worker, for no longer than this; its
// making and sealing is part of it.
func BenchmarkAttacks(b *testing.B) {
	for _, attack := range attacks {
		b.Run(attack.name, func(b *testing.B) {
			n := newNeighborhood(b)
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				if len(took)%32 == 0 {
					n.pass()
				}
				start := time.Now()
				attack.act(n.attacker)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
		})
	}
}
