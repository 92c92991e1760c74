package limiter

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/wire"
)

// captured is a datagram on its way, as somebody who listens has it.
type captured struct {
	h      wire.Header
	ttl    uint32
	report bool
}

// TestCapturedDatagrams sends captured datagrams again, at any time, in any order, while tables are
// tiny, the wall clock jumps, the tenant goes and comes back, and the server restarts. No engine
// executes an identity twice, or one that its predecessor did, and none executes what was stamped
// before it started.
func TestCapturedDatagrams(t *testing.T) {
	const steps = 30_000
	var executions, repeats, degraded int
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := &attack{rng: rng, t: t, executed: map[identityKey]bool{}, now: Time{Wall: wallStart}}
		a.restart()
		for range steps {
			a.step()
		}
		executions += a.executions
		repeats += a.repeats
		degraded += int(a.e.Stats().Degraded)
	}
	if executions < steps/2 || repeats < steps || degraded < 100 {
		t.Errorf("%d executions, %d repeats dropped or answered, %d degraded: the attack is too tame", executions, repeats, degraded)
	}
}

type attack struct {
	t          *testing.T
	rng        *rand.Rand
	e          *Engine
	start      uint64
	now        Time
	ids        uint64
	past       []captured
	executed   map[identityKey]bool // by this engine
	executions int
	repeats    int
	ans        wire.Answer
}

func (a *attack) config() Config {
	return Config{
		RateBuckets: 4, LatencyServices: 4, LatencyBufferSize: 8, DedupTTLMax: 100, WindowMax: 1000,
		Skew:       500,
		Identities: 1 + a.rng.IntN(1<<a.rng.IntN(11)), AnswerBytes: 1024 << a.rng.IntN(5),
		Seed: [16]byte{byte(a.rng.Uint32())},
	}
}

// restart is a crash: a new engine knows nothing but when it starts.
func (a *attack) restart() {
	a.replace(a.now.Wall)
	clear(a.executed)
}

// comeBack is a tenant that was removed and is there again: its new engine begins where the old one
// ended.
func (a *attack) comeBack() {
	a.replace(max(a.now.Wall, a.e.Stats().Latest))
}

func (a *attack) replace(start uint64) {
	c := a.config()
	c.Start = start
	var err error
	if a.e, err = New(c); err != nil {
		a.t.Fatal(err)
	}
	a.start = start
}

func (a *attack) step() {
	switch a.rng.IntN(40) {
	case 0:
		a.pass(a.rng.Int64N(700 * nsPerMs))
	case 1:
		if a.rng.IntN(20) == 0 {
			a.now.Wall += a.rng.Uint64N(2000) - 1000 // it steps
		}
	case 2:
		switch a.rng.IntN(100) {
		case 0:
			a.restart()
		case 1:
			a.comeBack()
		}
	case 3:
		c := a.config()
		if err := a.e.Reconfigure(c); err != nil {
			a.t.Fatal(err)
		}
	case 4, 5, 6, 7, 8, 9, 10, 11:
		a.client()
	default:
		a.replay()
	}
	a.pass(a.rng.Int64N(nsPerMs))
}

func (a *attack) pass(ns int64) {
	before := a.now.Mono / nsPerMs
	a.now.Mono += ns
	a.now.Wall += uint64(a.now.Mono/nsPerMs - before)
}

// client makes a logical request or report, with a clock of its own: one send, or several within the
// dedup TTL, each stamped anew. All are captured, and some arrive.
func (a *attack) client() {
	a.ids++
	c := captured{report: a.rng.IntN(4) == 0, ttl: 1 + a.rng.Uint32N(100)}
	binary.LittleEndian.PutUint64(c.h.UniqueID[:], a.ids)
	first := a.now.Wall + a.rng.Uint64N(1000) - 500
	sends := 1
	if !c.report {
		sends += a.rng.IntN(3)
	}
	at := len(a.past)
	for k := range sends {
		c.h.Timestamp = first
		if k > 0 {
			c.h.Timestamp += a.rng.Uint64N(uint64(c.ttl) + 1)
		}
		a.past = append(a.past, c)
	}
	for _, c := range slices.Backward(a.past[at:]) { // late ones first
		if a.rng.IntN(3) > 0 {
			a.arrive(c)
		}
	}
}

// replay sends something captured again, mostly something recent.
func (a *attack) replay() {
	if n := len(a.past); n > 0 {
		back := a.rng.IntN(1 + a.rng.IntN(1+a.rng.IntN(n)))
		a.arrive(a.past[n-1-back])
	}
}

func (a *attack) arrive(c captured) {
	var v Verdict
	kind := wire.KindRequest
	if c.report {
		kind = wire.KindReport
		view := reportView(a.t, wire.Layout2, watch{"x", 50, 4, 0}.took(uint32(a.rng.IntN(9))))
		v = a.e.Observe(a.now, &c.h, &view)
	} else {
		view := requestView(a.t, wire.Request{DedupTTL: c.ttl, Resources: []wire.Resource{take("x", 100, 3, 1)}})
		v = a.e.Decide(a.now, &c.h, &view, &a.ans)
	}
	if v != Granted && v != Rejected && v != Observed {
		a.repeats++
		return
	}
	a.executions++
	key := identityKey{c.h.UniqueID, kind}
	if a.executed[key] {
		a.t.Fatalf("seed gives identity %d twice, the second time at %d with timestamp %d", key.unique, a.now.Wall, c.h.Timestamp)
	}
	if c.h.Timestamp <= a.start {
		a.t.Fatalf("a datagram of %d is executed by an engine that started at %d", c.h.Timestamp, a.start)
	}
	a.executed[key] = true
}
