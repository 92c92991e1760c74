package sim

import (
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// engine returns the state of a server's engine at the end of the run.
func (t tape) engine(server int) (last limiter.Stats) {
	for _, r := range t.of(RecordServer) {
		if r.Server == server && !r.Up {
			last = *r.Engine
		}
	}
	return last
}

// TestEngineOptions: what a scenario says of an engine reaches it.
func TestEngineOptions(t *testing.T) {
	stale := func(got tape) bool {
		served := got.count(RecordServe, func(r *Record) bool { return r.Server == 0 })
		dropped := got.count(RecordServe, func(r *Record) bool { return r.Verdict == limiter.DropStale })
		return dropped == served && got.engine(1).Identities > 0
	}
	plain := play(t, small(nil), 1)
	if e := plain.engine(0); e.Degraded+e.AnswersLost+e.Shadowed > 0 || stale(plain) {
		t.Fatalf("without options: %+v", e)
	}
	for name, c := range map[string]struct {
		change func(*Scenario)
		is     func(tape) bool
	}{
		"identities": {
			func(s *Scenario) { s.Servers[0].Identities = 10 },
			func(got tape) bool { return got.engine(0).Degraded > 0 && got.engine(1).Degraded == 0 },
		},
		"answer bytes": {
			func(s *Scenario) { dense(s, 1000); s.Servers[0].AnswerBytes = 1024 },
			func(got tape) bool { return got.engine(0).AnswersLost > 0 && got.engine(1).AnswersLost == 0 },
		},
		"shadow": {
			func(s *Scenario) { s.Servers[0].Shadow, s.Buckets[0].Limit = true, 0 },
			func(got tape) bool {
				rejected := got.count(RecordServe, func(r *Record) bool { return r.Server == 0 && r.Verdict == limiter.Rejected })
				granted := got.count(RecordResponse, func(r *Record) bool { return r.Granted && r.Server == 0 })
				return rejected == 100 && granted == 100 && got.outcomes()[core.Granted] == 100 && got.engine(0).Shadowed == 100
			},
		},
		"clock skew": {
			func(s *Scenario) { s.Servers[0].ClockSkew, s.Clients[0].Skew = ms(100), ms(-200) },
			stale,
		},
		"skew": {
			func(s *Scenario) { s.Servers[0].Skew = 6 * time.Second },
			stale,
		},
		"the age": {
			func(s *Scenario) { s.Servers[0].Age = 5 * time.Second }, // B is older
			func(got tape) bool {
				b := got.of(RecordServer)[1].ID
				return got.count(RecordDecide, func(r *Record) bool { return r.Completion.Server == b }) == 100
			},
		},
	} {
		if got := play(t, small(c.change), 1); !c.is(got) {
			t.Errorf("%s: %+v, %+v, %v", name, got.engine(0), got.engine(1), got.outcomes())
		}
	}
}

// TestGuardOptions: estimator, pacing and its probes.
func TestGuardOptions(t *testing.T) {
	slow := func(change func(*Server)) *Scenario {
		return working(func(s *Scenario) {
			s.Length = 3 * time.Second
			s.Clients[0].Mix[0].Guard = []Guard{{"t", ms(20)}}
			s.Services[0].Parallel, s.Services[0].Time = -1, Uniform(0, ms(39))
			change(&s.Servers[0])
		})
	}
	granted := func(change func(*Server)) int { return play(t, slow(change), 1).outcomes()[core.Granted] }
	least := granted(func(s *Server) { s.Estimator = limiter.Min })
	most := granted(func(s *Server) { s.Estimator = limiter.P99 })
	if least != 3000 || most > 300 {
		t.Errorf("%d of 3000 are granted by the minimum of the samples and %d by their p99", least, most)
	}
	paced := play(t, slow(func(s *Server) { s.Estimator, s.Pacing = limiter.P99, true }), 1)
	if e := paced.engine(0); e.Trips == 0 {
		t.Errorf("with pacing nothing trips: %+v", e)
	}
	if quick := granted(func(s *Server) { s.Estimator, s.Pacing, s.Probe = limiter.P99, true, ms(10) }); quick <= paced.outcomes()[core.Granted]+50 {
		t.Errorf("probes each 10 ms let %d through, those each 900 ms %d", quick, paced.outcomes()[core.Granted])
	}
}

// TestAuthAndLayout: the decisions are the same in all of them.
func TestAuthAndLayout(t *testing.T) {
	for _, auth := range []apikey.Auth{0, apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES} {
		for _, layout := range []wire.Layout{0, wire.Layout1, wire.Layout2} {
			s := everything()
			s.Auth, s.Layout = auth, layout
			got := play(t, s, 1)
			if n := got.outcomes(); n[core.Granted] != 106 {
				t.Errorf("auth %d, layout %d: outcomes %v", auth, layout, n)
			}
		}
	}
}

// TestIdleEnginesForget: what has expired is taken back although nobody asks.
func TestIdleEnginesForget(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Length = 20 * time.Second
		s.Clients[0].Arrivals.Stop = time.Second
	})
	if e := play(t, s, 1).engine(0); e.Buckets+e.Identities+e.Answers > 0 {
		t.Errorf("an engine keeps %+v", e)
	}
}

// TestRefresh: the pace of discovery is the scenario's.
func TestRefresh(t *testing.T) {
	s := small(func(s *Scenario) {
		s.Length = 30 * time.Second
		s.DNS.TTL = time.Hour
	})
	srv := func() int {
		return play(t, s, 1).count(RecordLookup, func(r *Record) bool { return r.Lookup.Kind == core.LookupSRV })
	}
	if n := srv(); n > 1 {
		t.Errorf("%d lookups in 30 s with a TTL of an hour", n)
	}
	s.Refresh.Interval = 2 * time.Second
	if n := srv(); n < 14 || n > 16 {
		t.Errorf("%d lookups in 30 s, one each 2 s", n)
	}
}

// TestManyClients: a thousand of them and three servers are no burden.
func TestManyClients(t *testing.T) {
	s := bar(1)
	s.Length = time.Second
	s.Clients[0].Count = 1000
	s.Clients[0].Arrivals.Every = 100 * time.Millisecond
	s.Faults = nil
	sum, err := Run(s, 1, nil)
	if err != nil || sum.Requests < 9500 || sum.Requests > 10_500 {
		t.Errorf("%+v, %v", sum, err)
	}
}
