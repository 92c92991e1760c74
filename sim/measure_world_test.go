package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// measureRun plays a scenario and measures it.
func measureRun(t tb, s *Scenario, seed uint64) (*Measures, *Measurer) {
	t.Helper()
	m, err := NewMeasurer(s, MeasureOptions{Keep: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(s, seed, m); err != nil {
		t.Fatal(err)
	}
	out, err := m.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return out, m
}

// drawHealthy draws a scenario in which nothing goes wrong and the oldest server answers within the
// 20 ms for which it is preferred: at most 6 ms there, 6 ms back, and a short queue.
func drawHealthy(t *rapid.T) *Scenario {
	between := func(lo, hi int, what string) int { return rapid.IntRange(lo, hi).Draw(t, what) }
	µs := func(lo, hi int, what string) time.Duration {
		return time.Duration(between(lo, hi, what)) * time.Microsecond
	}
	s := &Scenario{
		Name: "healthy", Length: 3 * time.Second, Warmup: time.Duration(between(0, 1, "warmup")) * 500 * time.Millisecond,
		Layout: rapid.SampledFrom([]wire.Layout{0, wire.Layout1}).Draw(t, "layout"),
		Auth:   rapid.SampledFrom([]apikey.Auth{0, apikey.AuthAES}).Draw(t, "auth"),
		Buckets: []Bucket{
			{Name: "few", Limit: uint32(between(1, 40, "limit")), Window: time.Duration(between(1, 1500, "window")) * time.Millisecond},
			{Name: "many", Limit: uint32(between(1, 10, "limit of many")), Window: 100 * time.Millisecond, Count: between(1, 20, "buckets"), Zipf: 100},
		},
		Trackers: []Tracker{{
			Name: "work", TTL: 2 * time.Second, MaxSamples: uint32(between(1, 32, "samples")), MinSamples: uint32(between(1, 3, "least")),
		}},
		Services: []Service{{Name: "work", Parallel: between(1, 3, "parallel"), Time: Exponential(µs(1000, 30_000, "work")), Tracker: "work", Sample: between(0, 2, "sample")}},
	}
	estimator := limiter.Estimator(between(0, int(limiter.Mean), "estimator"))
	pacing := rapid.Bool().Draw(t, "pacing")
	for i := range between(1, 3, "servers") {
		s.Servers = append(s.Servers, Server{
			Name: fmt.Sprint("s", i), Age: time.Duration(between(1, 4, "age")) * time.Minute, Workers: between(1, 3, "workers"),
			Service: Uniform(0, µs(0, 60, "service")), Estimator: estimator, Pacing: pacing,
			Steering: rapid.Bool().Draw(t, "steering"), Skew: µs(-1_000_000, 1_000_000, "skew"),
		})
	}
	for i := range between(1, 3, "groups") {
		s.Clients = append(s.Clients, Clients{
			Name: fmt.Sprint("c", i), Count: between(1, 3, "clients"), Skew: µs(-1_000_000, 1_000_000, "client's skew"),
			Arrivals: Arrivals{
				Kind: rapid.SampledFrom([]ArrivalKind{ArriveConstant, ArrivePoisson, ArriveBurst}).Draw(t, "kind"), Every: µs(10_000, 60_000, "every"),
				Size: between(1, 4, "burst"),
			},
			Mix: []Choice{
				{Weight: 2, Take: []Take{{Bucket: "few", Tokens: uint16(between(0, 3, "tokens"))}}},
				{Take: []Take{{Bucket: "many", Tokens: 1}, {Bucket: "few", Tokens: 1}}},
				{Guard: []Guard{{Tracker: "work", Threshold: time.Duration(between(1, 60, "threshold")) * time.Millisecond}}, Work: "work"},
			},
		})
		if a := &s.Clients[i].Arrivals; a.Kind != ArriveBurst {
			a.Size = 0
		}
	}
	link := Link{From: "*", To: "*", Both: true, Delay: Uniform(0, µs(0, 6000, "delay")), FIFO: rapid.Bool().Draw(t, "in order")}
	if !link.FIFO {
		link.Duplicate = PerMillion(between(0, 100_000, "duplicate"))
	}
	s.Links = []Link{link}
	return s
}

// TestMeasureHealthIsCorrect is what everything else stands on: where nothing goes wrong no
// decision is false by the arrival-order oracle, and nothing is granted beyond a limit or executed
// twice.
func TestMeasureHealthIsCorrect(t *testing.T) {
	judged, rejected, duplicates := uint64(0), uint64(0), uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		s := drawHealthy(t)
		m, _ := measureRun(t, s, uint64(rapid.IntRange(0, 1000).Draw(t, "seed")))
		if n := m.Latency.Fallback.Count(); n > 0 || m.Requests.Decided() != m.Requests.Submitted {
			t.Fatalf("the scenario is not healthy: %d decided by another server; %+v", n, m.Requests)
		}
		if a := m.Arrival; a.FalseGrant+a.FalseDenial+a.UndecidedGrant+a.UndecidedDenial > 0 || a.Judged != m.Requests.Submitted {
			t.Fatalf("%+v of %d requests", a, m.Requests.Submitted)
		}
		if m.Over.Excess > 0 || m.Over.WorstPPM > 0 || m.Executed.Again > 0 || m.Executed.ErrorGrants > 0 || m.Unfollowed > 0 {
			t.Fatalf("%+v, %+v, %d datagrams not followed", m.Over, m.Executed, m.Unfollowed)
		}
		// An answer may come to a port that was left for good.
		lost := m.Losses.Requests.sum() + m.Losses.Answers.sum()
		if m.Losses.Answers[LostSocket] != lost || lost == 0 && m.Datagrams != m.Health {
			t.Fatalf("%+v lost; datagrams are %+v, in health %+v", m.Losses, m.Datagrams, m.Health)
		}
		judged += m.Arrival.Judged
		rejected += m.Requests.Rejected
		duplicates += m.Dedup.FromMemory
	})
	if rejected*20 < judged || rejected*20 > judged*19 || duplicates == 0 {
		t.Errorf("the scenarios prove little: of %d requests %d were rejected, %d answers came from memory", judged, rejected, duplicates)
	}
}

// faulty is a scenario in which much goes wrong.
func faulty(length time.Duration) *Scenario {
	return &Scenario{
		Name: "faulty", Length: length,
		Buckets: []Bucket{{Name: "b", Limit: 30, Window: 500 * time.Millisecond, Count: 4}},
		Servers: []Server{
			{Name: "old", Age: 3 * time.Hour, Service: Constant(20 * time.Microsecond), Workers: 4, Steering: true},
			{Name: "mid", Age: 2 * time.Hour, Service: Constant(20 * time.Microsecond)},
			{Name: "new", Age: time.Hour, Service: Constant(20 * time.Microsecond)},
		},
		Clients:  []Clients{{Name: "c", Count: 4, Arrivals: Arrivals{Kind: ArrivePoisson, Every: 10 * time.Millisecond}, Mix: []Choice{{Take: []Take{{Bucket: "b", Tokens: 1}}, Work: "w"}}}},
		Services: []Service{{Name: "w", Parallel: 10, Time: Constant(5 * time.Millisecond), Tracker: "w"}},
		Trackers: []Tracker{{Name: "w", TTL: time.Second, MaxSamples: 10, MinSamples: 1}},
		Links:    []Link{{From: "*", To: "*", Both: true, Delay: Uniform(time.Millisecond, 5*time.Millisecond), Loss: 20_000, Duplicate: 10_000}},
		DNS:      DNS{TTL: time.Second, Join: 100 * time.Millisecond, Leave: 100 * time.Millisecond},
		Faults: []Fault{
			{Kind: FaultKill, At: 1500 * time.Millisecond, For: 500 * time.Millisecond, Server: "old"},
			{Kind: FaultPartition, At: 3 * time.Second, For: 200 * time.Millisecond, From: "*", To: "mid", Both: true},
		},
	}
}

// TestMeasuresOfFaults is about all of it together: what goes wrong is seen, and the same each time.
func TestMeasuresOfFaults(t *testing.T) {
	m, _ := measureRun(t, faulty(6*time.Second), 7)
	if m.Arrival.FalseGrant == 0 || m.Over.Excess == 0 || m.Disagree.Disagreed == 0 || len(m.Faults) != 2 || m.Losses.Requests[LostLink] == 0 ||
		m.Losses.Requests[LostPartition] == 0 || m.Losses.Requests[LostDead] == 0 || m.Latency.Fallback.Count() == 0 || m.Datagrams.Replay == 0 {
		t.Errorf("%+v", m)
	}
	if m.Executed.Again != 0 {
		t.Errorf("%d executions again, though clocks agree", m.Executed.Again)
	}
	if n := m.Requests; n.Granted+n.Rejected+n.TimedOut+n.Refused != n.Submitted {
		t.Errorf("requests do not add up: %+v", n)
	}
	first, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := measureRun(t, faulty(6*time.Second), 7)
	if second, err := json.Marshal(again); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same seed gives other measures (%v)", err)
	}
}

// footprint counts what a measurer has ever needed at once.
func (m *Measurer) footprint() map[string]int {
	logs, windows := 0, 0
	for i := range m.buckets.all {
		logs += cap(m.buckets.all[i].log)
		windows += cap(m.buckets.all[i].open)
	}
	visits := 0
	for _, q := range m.requests.free {
		visits += cap(q.visits)
	}
	work := 0
	for i := range m.services {
		work += len(m.services[i].under)
	}
	return map[string]int{
		"requests": len(m.requests.free), "followed": cap(m.requests.all), "visits": visits, "reports": cap(m.reports.all) + len(m.reports.free),
		"grants": cap(m.grants), "log": logs, "windows": windows, "work": work + len(m.reports.byID), "oracles": m.arrival.engine.Stats().Memory + m.submit.engine.Stats().Memory,
	}
}

// TestMeasurerIsFlat has ten times the requests need as much as a tenth of them.
func TestMeasurerIsFlat(t *testing.T) {
	_, short := measureRun(t, faulty(4*time.Second), 1)
	out, long := measureRun(t, faulty(40*time.Second), 1)
	if out.Requests.Submitted < 15_000 {
		t.Fatalf("%d requests", out.Requests.Submitted)
	}
	few, many := short.footprint(), long.footprint()
	for _, what := range []string{"requests", "followed", "visits", "reports", "grants", "log", "windows", "work", "oracles"} {
		if many[what] > 2*few[what] {
			t.Errorf("%s: %d, and %d for ten times the requests", what, few[what], many[what])
		}
	}
}
