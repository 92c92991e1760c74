package limiter

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

const second = int64(1_000_000_000)

// loop is a closed loop in virtual time: clients ask an engine whether they may use services, which
// work what is granted from a queue, and report how long it took.
type loop struct {
	seconds  int
	seed     uint64
	load     func(second float64) float64 // offered requests per second; Poisson
	services []*service
	pacing   bool
	shed     Estimator
	samples  uint32
	ttl      uint32 // ms
	sampled  int    // one report in so many is sent
}

// service is what is protected: servers work from one queue.
type service struct {
	name      string
	servers   int
	perSecond float64                      // what all of them do
	even      bool                         // work takes always the same time, not an exponential one
	slower    func(second float64) float64 // by how much
	delay     func(second float64) float64 // ms that come to a latency without taking a server
	threshold uint32                       // ms

	busy  int
	queue []int64 // when what waits has come
}

// outcome is what came of a loop.
type outcome struct {
	offered, granted int
	good             []int // finished under the threshold of its service, by second; for the last service
	admitted         []int // by second
}

// goodput returns finished work under the threshold per second, from a second on.
func (o *outcome) goodput(from int) float64 {
	n := 0
	for _, g := range o.good[from:] {
		n += g
	}
	return float64(n) / float64(len(o.good)-from)
}

// idle returns the seconds without an admission.
func (o *outcome) idle() (seconds []int) {
	for s, n := range o.admitted {
		if n == 0 {
			seconds = append(seconds, s)
		}
	}
	return seconds
}

type happening struct {
	at    int64
	order int
	kind  int // what follows
	of    *service
	since int64
	ms    uint32
}

const (
	arrival = iota
	finish
	answer
)

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	h := (*a)[last]
	*a = (*a)[:last]
	return h
}

// run plays the loop.
func (l loop) run(t testing.TB) outcome {
	t.Helper()
	c := testConfig()
	c.Pacing, c.Estimator, c.LatencyBufferSize = l.pacing, l.shed, 1024
	c.Start = wallStart - 10_000
	r := newRig(t, c)
	rng := rand.New(rand.NewPCG(l.seed, 1))
	var q wire.Request
	reports := make([]map[uint32]wire.ReportView, len(l.services))
	number := make(map[*service]int)
	for i, s := range l.services {
		g := wire.Guard{TTL: l.ttl, MaxSamples: l.samples, MinSamples: 5, Threshold: s.threshold}
		g.Tracker = ident.Tracker(s.name, g.TTL, g.MaxSamples, g.MinSamples)
		q.Guards = append(q.Guards, g)
		reports[i] = make(map[uint32]wire.ReportView)
		number[s] = i
		s.busy, s.queue = 0, nil
	}
	ask := requestView(t, q)
	var next agenda
	order := 0
	plan := func(h happening) {
		order++
		h.order = order
		heap.Push(&next, h)
	}
	work := func(s *service, now int64) {
		for s.busy < s.servers && len(s.queue) > 0 {
			mean := float64(s.servers) / s.perSecond
			if s.slower != nil {
				mean *= s.slower(float64(now) / 1e9)
			}
			if !s.even {
				mean *= rng.ExpFloat64()
			}
			plan(happening{at: now + int64(mean*1e9), kind: finish, of: s, since: s.queue[0]})
			s.queue = s.queue[1:]
			s.busy++
		}
	}
	o := outcome{good: make([]int, l.seconds), admitted: make([]int, l.seconds)}
	plan(happening{kind: arrival})
	header := func() wire.Header {
		r.ids++
		h := wire.Header{Timestamp: r.now.Wall}
		binary.LittleEndian.PutUint64(h.UniqueID[:], r.ids)
		return h
	}
	for {
		h := heap.Pop(&next).(happening)
		if h.at >= int64(l.seconds)*second {
			return o
		}
		r.pass(h.at + 1 - r.now.Mono)
		switch h.kind {
		case arrival:
			plan(happening{at: h.at + int64(rng.ExpFloat64()*1e9/l.load(float64(h.at)/1e9)), kind: arrival})
			o.offered++
			id := header()
			if v := r.e.Decide(r.now, &id, &ask, &r.ans); v == Rejected {
				continue
			} else if v != Granted {
				t.Fatal(v)
			}
			o.granted++
			o.admitted[h.at/second]++
			for _, s := range l.services {
				s.queue = append(s.queue, h.at)
				work(s, h.at)
			}
		case finish:
			h.of.busy--
			extra := int64(0)
			if h.of.delay != nil {
				extra = int64(h.of.delay(float64(h.at)/1e9) * 1e6)
			}
			ms := uint32((h.at + extra - h.since) / nsPerMs)
			if ms < h.of.threshold && number[h.of] == len(l.services)-1 {
				o.good[h.at/second]++
			}
			if l.sampled <= 1 || rng.IntN(l.sampled) == 0 {
				plan(happening{at: h.at + extra + nsPerMs/2, kind: answer, of: h.of, ms: ms})
			}
			work(h.of, h.at)
		case answer:
			i := number[h.of]
			v, ok := reports[i][h.ms]
			if !ok {
				g := q.Guards[i]
				v = reportView(t, wire.Layout2, wire.Observation{
					Tracker: g.Tracker, TTL: g.TTL, MaxSamples: g.MaxSamples, MinSamples: g.MinSamples, Latency: h.ms,
				})
				reports[i][h.ms] = v
			}
			id := header()
			if v := r.e.Observe(r.now, &id, &v); v != Observed {
				t.Fatal(v)
			}
		}
	}
}

func steady(v float64) func(float64) float64 { return func(float64) float64 { return v } }

func (o *outcome) String() string {
	return fmt.Sprintf("offered %d, granted %d, goodput %.0f/s, seconds without admissions %v",
		o.offered, o.granted, o.goodput(0), o.idle())
}
