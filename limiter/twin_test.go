package limiter

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/wire"
)

// sent is a datagram that a test may send again.
type sent struct {
	h      wire.Header
	q      wire.Request
	obs    []wire.Observation
	report bool
}

func (s *sent) key() identityKey {
	if s.report {
		return identityKey{s.h.UniqueID, wire.KindReport}
	}
	return identityKey{s.h.UniqueID, wire.KindRequest}
}

// twins are engines that differ in nothing but their seeds, and the model of what they must do.
type twins struct {
	t        testing.TB
	m        *model
	engines  [2]*Engine
	executed map[identityKey]uint64 // by these engines or their predecessors: when it is spent
	seen     [verdicts]int
	ans      [2]wire.Answer
}

func newTwins(t testing.TB, c Config) *twins {
	w := &twins{t: t, executed: map[identityKey]uint64{}}
	w.begin(c)
	return w
}

// begin starts new engines that know nothing but c.Start.
func (w *twins) begin(c Config) {
	w.m = newModel(c)
	for i := range w.engines {
		c.Seed[0] = byte(i)
		w.engines[i] = newRig(w.t, c).e
	}
}

// reload changes the configuration of engines at work.
func (w *twins) reload(c Config) error {
	w.m.reload(c)
	for _, e := range w.engines {
		if err := e.Reconfigure(c); err != nil {
			return err
		}
	}
	return nil
}

// distinct moves a timestamp on until no other identity is spent with it: of two that are, the model
// does not know which is forgotten first.
func (w *twins) distinct(s *sent) {
	taken := map[uint64]bool{}
	for key, id := range w.m.known {
		taken[id.spent] = taken[id.spent] || key != s.key()
	}
	for taken[s.h.Timestamp+w.ttl(s)] {
		s.h.Timestamp++
	}
}

// send gives a datagram to both engines and returns how they differ from the model, or what they may
// never do.
func (w *twins) send(now Time, s sent) error {
	// What the calls' small steps have left; the model forgets at once.
	for w.engines[0].Reclaim(now, 1000) || w.engines[1].Reclaim(now, 1000) {
	}
	var got [2]Verdict
	var want Verdict
	var wantAns wire.Answer
	if s.report {
		v := reportView(w.t, s.q.Layout, s.obs...)
		w.ans = [2]wire.Answer{}
		for i, e := range w.engines {
			got[i] = e.Observe(now, &s.h, &v)
		}
		want = w.m.observe(now, &s.h, &v)
	} else {
		v := requestView(w.t, s.q)
		for i, e := range w.engines {
			got[i] = e.Decide(now, &s.h, &v, &w.ans[i])
		}
		w.m.told = w.ans[0].Latencies
		want, wantAns = w.m.decide(now, &s.h, &v)
	}
	if got[0] == DropNoAnswer && w.engines[0].Stats().AnswersLost > 0 && (want == RepeatGranted || want == RepeatRejected) {
		want, wantAns = DropNoAnswer, wire.Answer{}
	}
	w.seen[got[0]]++
	for i, a := range w.ans {
		if got[i] != want {
			return fmt.Errorf("engine %d: %v, want %v", i, got[i], want)
		}
		if !slices.Equal(a.Latencies, wantAns.Latencies) || !slices.Equal(a.Rates, wantAns.Rates) || !slices.Equal(a.Deficits, wantAns.Deficits) {
			return fmt.Errorf("engine %d: %v with %v, want %v", i, want, a, wantAns)
		}
		st := w.engines[i].Stats()
		if st.Floor != w.m.floor || st.Degraded != w.m.degraded || st.Identities != len(w.m.known) {
			return fmt.Errorf("engine %d: floor %d, degraded %d, %d identities; want %d, %d, %d",
				i, st.Floor, st.Degraded, st.Identities, w.m.floor, w.m.degraded, len(w.m.known))
		}
	}
	// A client stamps all sends of one request within its dedup TTL: no such copy is executed again.
	key := s.key()
	spent, known := w.executed[key]
	if want == Granted || want == Rejected || want == Observed {
		if known && s.h.Timestamp <= spent {
			return fmt.Errorf("identity %d, spent at %d, is executed again with timestamp %d", binary.LittleEndian.Uint64(s.h.UniqueID[:]), spent, s.h.Timestamp)
		}
		spent = max(spent, s.h.Timestamp+w.ttl(&s))
		w.executed[key] = spent
	}
	if id := w.m.known[key]; id != nil {
		w.executed[key] = max(spent, id.spent)
	}
	return nil
}

// ttl returns how long after its timestamp a datagram is spent.
func (w *twins) ttl(s *sent) uint64 {
	if s.report {
		return uint64(w.m.c.DedupTTLMax)
	}
	return uint64(s.q.DedupTTL)
}
