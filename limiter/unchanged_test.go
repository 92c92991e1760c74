package limiter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/wire"
)

// state writes down what an engine would go by in its next decisions, but for identities and answers:
// the groups of every bucket, the samples of every tracker, the room and the rate of every pacer, and
// how much memory is in use. What is over it takes back before.
func (r *rig) state() string {
	for r.e.Reclaim(r.now, 1000) {
	}
	var lines []string
	b := &r.e.buckets
	for i := uint32(1); i < b.pool.fresh; i++ {
		p := b.pool.at(i)
		if b.find(&p.key, p.key.hash(b.hash)) != i || b.live(i, r.now.Mono) == 0 {
			continue
		}
		all := []group{p.only}
		if p.class > 0 {
			all = nil
			ring := p.ring(&b.mem)
			for k := range int(p.count) {
				all = append(all, ring[(int(p.head)+k)%len(ring)])
			}
		}
		lines = append(lines, fmt.Sprintf("bucket %v: %d live, span %d, least %d: %v", p.key, p.live, p.span, p.least, all))
	}
	t := &r.e.trackers
	for i := uint32(1); i < t.pool.fresh; i++ {
		p := t.pool.at(i)
		if t.find(&p.key, p.key.hash(t.hash)) != i {
			continue
		}
		t.expire(p, r.now.Mono, maxSamples)
		line := fmt.Sprintf("tracker %v, sum %d:", p.key, p.sum)
		ring := t.mem.at(p.slab, p.class)
		for k := range int(p.count) {
			s := ring[(int(p.head)+k)%len(ring)]
			line += fmt.Sprintf(" %d at %d", s.latency, s.at)
		}
		for k := p.pacers; k != 0; k = t.pacers.at(k).next {
			q := t.pacers.at(k)
			passed := q.old[granted]
			for _, s := range q.slots {
				passed += s[granted]
			}
			line += fmt.Sprintf("; below %d: state %d, rate %d, turn %d, spent %d, granted %d", q.threshold, q.state, q.rate, q.turn, q.spent, passed)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + fmt.Sprintf("\n%d buckets in %d items", b.pool.live, b.mem.used)
}

// TestDenialsChangeNothing fills an engine at random and sends it what it denies or drops, again and
// again: of what decides the next request nothing has changed.
func TestDenialsChangeNothing(t *testing.T) {
	var seen [verdicts]int
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := testConfig()
		c.RateBuckets, c.Pacing, c.Skew, c.WindowMax = 12, true, 1000, 60_000
		r := newRig(t, c)
		w := []watch{{"one", 5000, 16, 1}, {"two", 3000, 40, 3}}
		some := func() wire.Resource { return numbered(rng.IntN(11), 2000, 50, uint16(rng.IntN(9))) }
		thresholds := []uint32{80, 100, 1000}
		var last wire.Header
		var lastQuery wire.Request
		for range 3000 {
			r.pass(rng.Int64N(20 * nsPerMs))
			if rng.IntN(3) == 0 {
				r.report(w[rng.IntN(2)].took(60 + rng.Uint32N(60)))
			}
			q := wire.Request{Guards: []wire.Guard{w[rng.IntN(2)].below(thresholds[rng.IntN(3)])}, Resources: []wire.Resource{some(), some()}}
			h := r.header()
			if v := r.send(h, q); v == Granted {
				last, lastQuery = h, q
			}
			if rng.IntN(4) > 0 || lastQuery.Guards == nil {
				continue
			}
			// Guards that are asked now have decided by themselves already: what a trip does is theirs.
			guards := []wire.Guard{w[0].below(100), w[1].below(1000)}
			r.send(r.header(), wire.Request{Guards: guards, Resources: []wire.Resource{numbered(99, 1, 0, 1)}})
			before := r.state()
			resources := []wire.Resource{some(), some(), some(), numbered(12, 2000, 9, 1)} // the last is new
			h, q = r.header(), wire.Request{Guards: guards, Resources: resources}
			at := rng.IntN(len(resources) + 1)
			denial := rng.IntN(9)
			switch denial {
			case 0: // more than is left, in one block or two
				q.Resources = slices.Insert(q.Resources, at, numbered(3, 2000, 50, 51))
			case 1:
				q.Resources = slices.Insert(q.Resources, at, numbered(3, 2000, 50, 26), numbered(3, 2000, 50, 26))
			case 2:
				q.Resources = slices.Insert(q.Resources, at, numbered(1, 0, 50, 1))
			case 3: // no room for so many
				for k := range 12 {
					q.Resources = append(q.Resources, numbered(100+k, 2000, 50, 1))
				}
			case 4:
				q.Guards = append(slices.Clone(guards), w[0].below(0))
			case 5:
				q.Resources = slices.Insert(q.Resources, at, numbered(1, 60_001, 50, 1))
			case 6:
				h.Timestamp -= 1001
			case 7:
				q.DedupTTL = 301
			case 8: // a repeat, whatever has become of the first
				h, q = last, lastQuery
			}
			v := r.send(h, q)
			seen[v]++
			if v == Granted || denial < 5 != (v == Rejected) {
				t.Fatalf("denial %d: %v", denial, v)
			}
			if after := r.state(); after != before {
				t.Fatalf("seed %d, denial %d, %v: before\n%s\nafter\n%s", seed, denial, v, before, after)
			}
		}
		if s := r.e.Stats(); s.Trips < 20 || s.Buckets < 5 {
			t.Errorf("seed %d: %d trips, %d buckets: too tame", seed, s.Trips, s.Buckets)
		}
	}
	for _, v := range []Verdict{Rejected, RepeatGranted, DropWindow, DropStale, DropTTL, DropReplayed} {
		if seen[v] < 10 {
			t.Errorf("%d were %v", seen[v], v)
		}
	}
}
