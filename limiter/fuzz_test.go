package limiter

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/storm"
	"github.com/weirhq/weir/wire"
)

// script reads the steps of a life of an engine from bytes, of which every string is some life. When
// they are used up, all further ones are 0.
type script struct{ rest []byte }

func (s *script) next() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// below returns a number below n, which is at most 256.
func (s *script) below(n int) int { return int(s.next()) % n }

func pick[T any](s *script, from ...T) T { return from[s.below(len(from))] }

// life is what a script tells.
type life struct {
	script
	w    *twins
	c    Config
	now  Time
	ids  uint64
	past []sent
	// samples are the buffer sizes to choose from: of one size of slab, so that memory that is promised
	// to full trackers is there for those above a lowered quota too.
	samples []uint32
}

// maxSteps is where a life ends.
const maxSteps = 400

func newLife(t testing.TB, script script) *life {
	l := &life{script: script, now: Time{Mono: 60 * nsPerMs, Wall: wallStart}}
	l.samples = pick(&l.script, []uint32{1, 2, 3, 4}, []uint32{33, 40, 64})
	l.c = Config{DedupTTLMax: 40, WindowMax: 500, Skew: 100, AnswerBytes: 1 << 16, Start: wallStart - 50}
	l.configure()
	l.w = newTwins(t, l.c)
	return l
}

// configure draws what a reload may change.
func (l *life) configure() {
	mode := l.next()
	l.c.Pacing = mode&3 == 2
	l.c.Shadow = mode&3 == 1 && (l.w == nil || !l.w.m.paced) // the model could not be told what guards show
	l.c.Estimator = Estimator(mode>>2) % estimators
	l.c.RateBuckets, l.c.LatencyServices = uint32(l.below(9)), uint32(l.below(5))
	l.c.LatencyBufferSize = pick(&l.script, l.samples...)
	l.c.Identities = pick(&l.script, 200, 200, 200, 200, 200, 200, 32, 8, 1)
	l.c.AnswerBytes = pick(&l.script, 1<<16, 1024, 1024)
	l.c.DedupTTLMax = pick[uint32](&l.script, 40, 200, 20, 200)
	l.c.WindowMax = pick[uint32](&l.script, 500, 500, 500, 50)
}

// live takes all steps and returns the first difference between engines and model.
func (l *life) live() error {
	for step := 0; step < maxSteps && len(l.rest) > 0; step++ {
		var err error
		switch op := l.next(); op % 16 {
		case 0:
			l.pass(pick[int64](&l.script, 0, 1, 1, nsPerMs, nsPerMs, 10*nsPerMs, 20*nsPerMs-1, 20*nsPerMs))
			if l.below(8) == 0 {
				l.pass(pick[int64](&l.script, 20*nsPerMs, 30*nsPerMs, 80*nsPerMs, 180*nsPerMs, 380*nsPerMs, 11_000*nsPerMs))
			}
		case 1:
			l.pass(int64(binary.LittleEndian.Uint16([]byte{l.next(), l.next()})) << l.below(9))
		case 2:
			if by := l.next(); by < 64 {
				l.now.Wall += uint64(4 * by)
			}
		case 3:
			if by := l.next(); by < 64 {
				l.now.Wall -= uint64(by)
			}
		case 4:
			if l.below(4) == 0 {
				l.configure()
				err = l.w.reload(l.c)
			}
		case 5: // the tenant was removed, and is there again
			if l.below(16) == 0 {
				l.c.Start = max(l.now.Wall, l.w.engines[0].Stats().Latest)
				l.w.begin(l.c)
				l.pass(pick[int64](&l.script, 0, 200*nsPerMs, 300*nsPerMs))
			}
		case 6, 7, 8:
			err = l.again()
		case 9, 10, 11:
			s := l.datagram(true)
			for range l.below(4) {
				s.obs = append(s.obs, l.observation())
			}
			err = l.send(s)
		default:
			s := l.datagram(false)
			s.q.Guards, s.q.Resources = l.blocks()
			err = l.send(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *life) pass(ns int64) {
	before := l.now.Mono / nsPerMs
	l.now.Mono += ns
	l.now.Wall += uint64(l.now.Mono/nsPerMs - before)
}

// datagram returns one of a new identity without blocks.
func (l *life) datagram(report bool) sent {
	l.ids++
	s := sent{report: report}
	binary.LittleEndian.PutUint64(s.h.UniqueID[:], l.ids)
	how := l.next()
	s.q.Layout = []wire.Layout{wire.Layout2, wire.Layout2, wire.Layout2, wire.Layout1}[how&3]
	s.q.DedupTTL = []uint32{20, l.c.DedupTTLMax, l.c.DedupTTLMax, 1, 20, l.c.DedupTTLMax, l.c.DedupTTLMax, l.c.DedupTTLMax}[how>>2&7]
	if how == 255 {
		s.q.DedupTTL += 21 // and that may be above the quota
	}
	// Clocks differ by a little, or about as much as they may.
	off := int64(l.next())
	if off < 224 {
		off = off&7 - 3
	} else {
		off = (off-240)*7 - 1
	}
	s.h.Timestamp = uint64(int64(l.now.Wall) + off)
	return s
}

// blocks draws guards and resources of few trackers and buckets, so that they meet.
func (l *life) blocks() (guards []wire.Guard, resources []wire.Resource) {
	n := l.next()
	for range n % 3 {
		o := l.observation()
		guards = append(guards, wire.Guard{
			Tracker: o.Tracker, TTL: o.TTL, MaxSamples: o.MaxSamples, BufferSize: o.BufferSize, MinSamples: o.MinSamples, Threshold: o.Latency,
		})
	}
	for range n / 3 % 6 {
		b := l.next()
		if b == 255 {
			resources = append(resources, wire.Resource{Window: 501, Rate: 1, Tokens: 1})
		}
		resources = append(resources, wire.Resource{
			Bucket: ident.ID{b & 1}, Window: []uint32{50, 10, 1, 500, 0, 50, 50, 50}[b>>1&7], Rate: []uint32{5, 100, 1, 0}[b>>4&3],
			Tokens: pick[uint16](&l.script, 1, 2, 0, 5, 7, 65535, 1, 1),
		})
	}
	return guards, resources
}

func (l *life) observation() wire.Observation {
	b, v := l.next(), l.next()
	o := wire.Observation{Tracker: ident.ID{b & 1}, TTL: 400, MaxSamples: 100, BufferSize: 4, MinSamples: 1, Latency: uint32(v % 64)}
	if b >= 160 {
		o.TTL, o.MaxSamples = []uint32{100, 20, 0, 400}[b>>1&3], []uint32{100, 3, 0, 5}[b>>3&3]
		o.BufferSize, o.MinSamples = uint32(v>>6&1), uint32(v>>7)*3
	}
	return o
}

// again sends a datagram that was sent before: the same bytes, sealed anew, or changed.
func (l *life) again() error {
	if len(l.past) == 0 {
		return nil
	}
	s := l.past[len(l.past)-1-min(l.below(80), len(l.past)-1)]
	switch how := l.next(); how % 4 {
	case 1: // within the dedup TTL of its first send
		s.h.Timestamp += uint64(how>>2) % (uint64(s.q.DedupTTL) + 1)
	case 2:
		s.q.Label = "other"
	case 3: // an identity of its own
		s.report = !s.report
	}
	return l.resend(s)
}

func (l *life) send(s sent) error {
	if len(l.past) < maxSteps {
		l.past = append(l.past, s)
	}
	return l.resend(s)
}

func (l *life) resend(s sent) error {
	l.w.distinct(&s)
	return l.w.send(l.now, s)
}

// engineTarget plays any life there is, with time that goes on and jumps, repeats of all kinds, reloads,
// and tables that are full, and compares every verdict and every number with the plain model.
func engineTarget() *storm.Target {
	target := storm.New("FuzzEngine", func(t testing.TB, b []byte) {
		if err := newLife(t, script{b}).live(); err != nil {
			t.Fatal(err)
		}
	})
	for _, life := range lives(24, 300) {
		target.Add(life)
	}
	return target
}

func FuzzEngine(f *testing.F)      { engineTarget().Fuzz(f) }
func TestStormEngine(t *testing.T) { engineTarget().Storm(t) }

var livesSeed = flag.Uint64("lives-seed", 1, "seed of the lives of engines that are compared with the plain model")

// lives returns so many random scripts of up to so many bytes.
func lives(n, most int) (all [][]byte) {
	rng := rand.New(rand.NewPCG(*livesSeed, 7))
	for range n {
		b := make([]byte, 40+rng.IntN(most))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		all = append(all, b)
	}
	return all
}

// TestLivesMeetEverything holds the scripts to their purpose: in random ones everything happens that
// can happen to a datagram.
func TestLivesMeetEverything(t *testing.T) {
	var seen [verdicts]int
	var trips, shadowed, degraded, lost uint64
	for k, b := range lives(300, 4000) {
		l := newLife(t, script{b})
		if err := l.live(); err != nil {
			t.Fatalf("life %d: %v", k, err)
		}
		for v, n := range l.w.seen {
			seen[v] += n
		}
		s := l.w.engines[0].Stats()
		trips += s.Trips
		shadowed += s.Shadowed
		degraded += s.Degraded
		lost += s.AnswersLost
	}
	for v := Granted; v < verdicts; v++ {
		if seen[v] < 3 {
			t.Errorf("%d datagrams were %v", seen[v], v)
		}
	}
	if min(trips, shadowed, degraded, lost) < 20 {
		t.Errorf("%d trips, %d shadowed, %d degraded, %d answers lost", trips, shadowed, degraded, lost)
	}
}
