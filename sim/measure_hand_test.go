package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/limiter"
)

// grantAt has a server execute a request at a time, and its client granted it some time later.
func (p *script) grantAt(number uint64, server int, executed, decided time.Duration) {
	p.serve(executed, number, server, limiter.Granted)
	p.decide(decided, number, server, core.Granted)
}

// TestMeasureOverLimit grants 4, 3 and 4 tokens of a limit of 5 in 100 ms, by servers that do not
// know of each other. The place of a grant is when its server executed it, whatever came first.
func TestMeasureOverLimit(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	p.ask(0, 1, bucketOf("b", 5, 4))
	p.ask(1, 2, bucketOf("b", 5, 1), bucketOf("c", 5, 1), bucketOf("b", 5, 2))
	p.serve(10, 1, 0, limiter.Granted)
	p.serve(30, 2, 1, limiter.Granted)
	p.decide(32, 2, 1, core.Granted)
	p.decide(50, 1, 0, core.Granted)
	// The first has just left the window: 3 are live, of which 1 had a right to be.
	p.ask(109, 3, bucketOf("b", 5, 4))
	p.serve(110, 3, 2, limiter.Granted)
	p.decide(115, 3, 2, core.Granted)
	// And what no client was granted is not over any limit.
	p.ask(111, 4, bucketOf("b", 5, 5))
	p.serve(112, 4, 2, limiter.Granted)
	p.decide(171, 4, -1, core.TimedOut)
	m := p.finish()
	want := OverLimit{Granted: 12, Excess: 2, Grants: 1, WorstPPM: 400_000}
	if m.Over != want {
		t.Errorf("%+v, want %+v", m.Over, want)
	}
	wants(t, m, map[string]float64{
		"excess_tokens": 2, "excess_percent": 200.0 / 12, "worst_window_percent": 40, "undecided_consumed_tokens": 5,
	})
}

// TestMeasureOverLimitWarmup fills a window in the warmup, which is not measured but counts.
func TestMeasureOverLimitWarmup(t *testing.T) {
	s := scriptScenario()
	s.Warmup = 50 * at
	p := newScript(t, s, MeasureOptions{})
	for n := range uint64(2) {
		p.ask(40, 1+n, bucketOf("b", 5, 5))
		p.grantAt(1+n, int(n), 41, 42)
	}
	p.ask(60, 3, bucketOf("b", 5, 1))
	p.grantAt(3, 2, 61, 62)
	if m := p.finish(); m.Over != (OverLimit{Granted: 1, Excess: 1, Grants: 1, WorstPPM: 1_200_000}) || m.Requests.Submitted != 1 {
		t.Errorf("%+v of %d requests", m.Over, m.Requests.Submitted)
	}
}

// TestMeasureNetTokens has a client granted what the submit-order oracle gives to another, within a
// window and across two.
func TestMeasureNetTokens(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	a, b := bucketOf("a", 2, 2), bucketOf("b", 4, 4)
	p.ask(10, 1, a) // the oracle grants it, its client does not
	p.ask(20, 2, a)
	p.decide(25, 1, 0, core.Rejected)
	p.grantAt(2, 0, 26, 27) // in the same window: no net
	p.ask(195, 3, b)        // the oracle grants it
	p.ask(205, 4, b)
	p.decide(206, 3, 0, core.Rejected)
	p.grantAt(4, 0, 207, 208)
	p.ask(510, 5, a, b)
	p.decide(570, 5, -1, core.TimedOut)
	m := p.finish()
	n := m.Net
	if n.Windows != 5 || n.Absolute != 4+4+2+4 || n.Signed != -6 || n.Max != 4 {
		t.Errorf("%+v", n)
	}
	if want := []NetRate{{Limit: 2, Windows: 2, Absolute: 2, Max: 2}, {Limit: 4, Windows: 3, Absolute: 12, Max: 4}}; !slices.Equal(n.Limits, want) {
		t.Errorf("by limit: %+v, want %+v", n.Limits, want)
	}
	wants(t, m, map[string]float64{"net_mean_tokens": 2.8, "net_mean_percent": 80, "net_max_tokens": 4, "net_max_percent": 100})
}

// TestMeasureExecutions has servers execute identities twice, in one process and over a restart, and
// consume what clients do not know of.
func TestMeasureExecutions(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	b := bucketOf("b", 100, 3)
	p.ask(0, 1, b)
	p.serve(1, 1, 0, limiter.Granted)
	p.serve(2, 1, 0, limiter.RepeatGranted)
	p.serve(3, 1, 0, limiter.Granted) // it forgot
	p.serve(3, 1, 1, limiter.Granted)
	p.up(4, 1, 9000)
	p.serve(5, 1, 1, limiter.Rejected) // another process in the same place
	p.serve(5, 1, 2, limiter.Granted)  // like the first execution in each of the other places
	p.decide(6, 1, 0, core.Granted)
	p.ask(10, 2, b)
	p.decide(70, 2, -1, core.TimedOut)
	p.serve(80, 2, 1, limiter.Granted) // after its client gave up
	p.serve(81, 2, 2, limiter.Granted)
	p.ask(100, 3, b)
	p.serve(101, 3, 1, limiter.Granted)
	p.serve(101, 3, 0, limiter.Rejected)
	p.decide(102, 3, 0, core.Rejected)
	m := p.finish()
	want := Executions{Again: 2, AgainTokens: 3, ErrorGrants: 1, ErrorTokens: 3, DeniedGrants: 1, DeniedTokens: 3}
	if m.Executed != want {
		t.Errorf("%+v, want %+v", m.Executed, want)
	}
	if d := m.Disagree; d != (Disagreements{Compared: 3, Disagreed: 1}) {
		t.Errorf("%+v", d)
	}
	wants(t, m, map[string]float64{
		"executed_again": 2, "executed_again_tokens": 3, "undecided_consumed_tokens": 3, "rejected_consumed_tokens": 3,
		"disagreed_percent": 100.0 / 3, "from_memory": 1,
	})
}

// TestMeasureKeep follows a request for its horizon and the time after it, and no longer.
func TestMeasureKeep(t *testing.T) {
	for _, tt := range []struct {
		last         time.Duration
		again, stray uint64
	}{{159, 1, 0}, {160, 0, 1}} {
		p := newScript(t, scriptScenario(), MeasureOptions{Keep: 100 * at})
		p.ask(0, 1, bucketOf("b", 5, 1))
		p.grantAt(1, 0, 1, 2)
		p.serve(tt.last, 1, 0, limiter.Granted)
		if m := p.finish(); m.Executed.Again != tt.again || m.Unfollowed != tt.stray {
			t.Errorf("at %d ms: %d executed again, %d not followed", tt.last, m.Executed.Again, m.Unfollowed)
		}
	}
}

func TestMeasureLatencies(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	for i, end := range []struct {
		after  time.Duration
		server int
		o      core.Outcome
	}{
		{1, 0, core.Granted},
		{2, 0, core.Rejected},
		{3, 0, core.Granted},
		{20, 1, core.Rejected},
		{40, 2, core.Granted},
		{60, -1, core.TimedOut},
		{5, -1, core.SendFailed},
	} {
		begin := time.Duration(100 * i)
		p.ask(begin, uint64(i+1))
		p.decide(begin+end.after, uint64(i+1), end.server, end.o)
	}
	p.ask(900, 8) // it never ends
	m := p.finish()
	l := &m.Latency
	for name, h := range map[string]struct {
		h                *Histogram
		count, min, mean int64
	}{
		"decided":  {&l.Decided, 5, 1, 13_200_000},
		"granted":  {&l.Granted, 3, 1, 14_666_666},
		"rejected": {&l.Rejected, 2, 2, 11_000_000},
		"oldest":   {&l.Oldest, 3, 1, 2_000_000},
		"fallback": {&l.Fallback, 2, 20, 30_000_000},
		"timeout":  {&l.TimedOut, 1, 60, 60_000_000},
	} {
		if h.h.Count() != h.count || h.h.Min() != h.min*int64(at) || h.h.Mean() != h.mean {
			t.Errorf("%s: %d values from %d, mean %d", name, h.h.Count(), h.h.Min(), h.h.Mean())
		}
	}
	want := RequestCounts{Submitted: 8, Granted: 3, Rejected: 2, TimedOut: 1, SendFailed: 1, Unended: 1}
	if m.Requests != want {
		t.Errorf("%+v, want %+v", m.Requests, want)
	}
	wants(t, m, map[string]float64{
		"availability_percent": 62.5, "timed_out_percent": 12.5, "send_failed_percent": 12.5, "granted_percent": 60,
		"fallback_percent": 40, "latency_max_ms": 40, "latency_mean_ms": 13.2, "fallback_latency_p99_ms": 40,
	})
}

// TestMeasureDatagrams counts what is sent for requests, and for those in health apart.
func TestMeasureDatagrams(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	one := func(ms time.Duration, number uint64) {
		p.ask(ms, number) // 3 first sends
		p.serve(ms+1, number, 0, limiter.Granted)
		p.send(ms+2, number, 1, core.SendCompletion)
		p.decide(ms+2, number, 0, core.Granted)
		p.serve(ms+3, number, 1, limiter.RepeatGranted)
		p.serve(ms+4, number, 2, limiter.DropReplayed) // is not answered
	}
	one(0, 1)
	p.ask(100, 2)
	p.send(120, 2, 1, core.SendReplay)
	p.decide(160, 2, -1, core.TimedOut)
	one(200, 3)
	p.put(&Record{At: 204 * at, Kind: RecordLost, Request: 3, Answer: true, Cause: LostLink})
	// A fault that begins just within the horizon, one that has just ended, and one of an instant.
	one(300, 4)
	p.fault(359, 0, true)
	one(400, 5)
	p.fault(450, 0, false)
	one(450, 6)
	p.fault(510, 2, true)
	p.fault(510, 2, false)
	one(510, 7)
	one(511, 8)
	m := p.finish()
	want := Datagrams{Decided: 7, First: 24, Replay: 1, Completion: 7, Answer: 14}
	if m.Datagrams != want {
		t.Errorf("%+v, want %+v", m.Datagrams, want)
	}
	// In health: 1, 2, 6 and 8.
	want = Datagrams{Decided: 3, First: 12, Replay: 1, Completion: 3, Answer: 6}
	if m.Health != want {
		t.Errorf("in health: %+v, want %+v", m.Health, want)
	}
	wants(t, m, map[string]float64{
		"datagrams_per_decision": 46.0 / 7, "completion_deliveries_per_decision": 1, "health_datagrams_per_decision": 22.0 / 3,
		"health_replays_per_decision": 1.0 / 3, "first_sends_per_decision": 24.0 / 7, "answers_per_decision": 2, "lost": 1,
	})
}

// TestMeasureDedup has copies of a request arrive at two servers.
func TestMeasureDedup(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	p.ask(0, 1)
	p.arrive(1, 1, 0, 1)
	p.arrive(2, 1, 1, 7)
	p.arrive(7, 1, 0, 2)
	p.arrive(17, 1, 1, 1) // 15 ms after the first, a quarter of the TTL
	p.arrive(20, 1, 2, 1) // alone
	p.arrive(31, 1, 0, 3) // 30 ms after
	for _, v := range []limiter.Verdict{limiter.Granted, limiter.RepeatGranted, limiter.RepeatRejected, limiter.DropFloor, limiter.DropStale} {
		p.serve(40, 1, 0, v)
	}
	p.put(&Record{At: 41 * at, Kind: RecordServe, Request: 1, Late: true})
	p.put(&Record{At: 41 * at, Kind: RecordServer, Server: 2, ID: p.ids[2], Engine: &limiter.Stats{Degraded: 5}})
	p.decide(50, 1, 0, core.Granted)
	m := p.finish()
	wants(t, m, map[string]float64{
		"from_memory": 2, "dropped": 2, "dropped_late": 1, "degraded": 5, "queue_max": 7,
		"dedup_window_max_percent": 50,
	})
	if w := &m.Dedup.Window; w.Count() != 2 || w.Min() != 250_000 || m.Queue.Count() != 6 {
		t.Errorf("%d servers with several copies, the least share %d ppm; %d arrivals", w.Count(), w.Min(), m.Queue.Count())
	}
}

// TestMeasureAnswers counts answers by what the client made of them, and requests with both
// outcomes once.
func TestMeasureAnswers(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	for n := range uint64(3) {
		p.ask(0, n+1)
	}
	p.respond(1, 1, 0, core.DatagramCounted, true, true)
	p.respond(2, 1, 1, core.DatagramLate, false, true)
	p.respond(3, 1, 2, core.DatagramDuplicate, true, true)
	p.respond(1, 2, 0, core.DatagramCounted, true, true)
	p.respond(2, 2, 1, core.DatagramForged, false, true) // contradicts nothing
	p.respond(1, 3, 0, core.DatagramCounted, false, true)
	p.respond(2, 3, 0, core.DatagramDuplicate, false, true)
	m := p.finish()
	wants(t, m, map[string]float64{
		"late_answers_percent": 100.0 / 7, "duplicate_answers_percent": 200.0 / 7, "invalid_answers_percent": 100.0 / 7, "contradictory": 1,
	})
}

func TestMeasureSteering(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	p.ask(0, 1)
	p.respond(3, 1, 0, core.DatagramStranger, true, false) // is no valid answer
	p.respond(5, 1, 0, core.DatagramCounted, true, false)
	p.respond(6, 1, 1, core.DatagramLate, true, false)
	p.respond(7, 1, 2, core.DatagramLate, true, true)
	p.ask(8, 2) // still from the old port
	p.ports[0] = port(50_001)
	p.ask(15, 3)
	p.ask(16, 4)
	p.ports[0] = port(50_000)
	p.respond(17, 1, 1, core.DatagramLate, true, false) // on a port that is left already
	p.ports[0] = port(50_002)
	p.ask(20, 5)
	p.respond(21, 5, 1, core.DatagramCounted, true, false)
	m := p.finish()
	s := &m.Steering
	if s.Applied.Count() != 1 || s.Applied.Max() != 10*int64(at) || s.Advised != 4 || s.Pending != 1 {
		t.Errorf("%d applied, the last after %d, %d answers, %d pending", s.Applied.Count(), s.Applied.Max(), s.Advised, s.Pending)
	}
	wants(t, m, map[string]float64{"steered": 1, "steering_p50_ms": 10, "steering_max_ms": 10})
}

// TestMeasureLosses counts what is lost, in the warmup not.
func TestMeasureLosses(t *testing.T) {
	s := scriptScenario()
	s.Warmup = 10 * at
	p := newScript(t, s, MeasureOptions{})
	for i, answer := range []bool{true, false, false} {
		for ms := range time.Duration(20) {
			p.put(&Record{At: ms * at, Kind: RecordLost, Server: -1, Cause: LostQueue + Cause(i), Answer: answer})
		}
	}
	m := p.finish()
	if m.Losses.Answers != (Causes{LostQueue: 10}) || m.Losses.Requests != (Causes{LostDead: 10, LostSocket: 10}) {
		t.Errorf("%+v", m.Losses)
	}
	if got := value(t, m, "lost"); got != 30 {
		t.Errorf("%v lost", got)
	}
}
