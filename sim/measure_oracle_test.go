package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

// TestMeasureOracles has two requests for the one token of a bucket overtake each other: in submit
// order the first is due the token, in the order in which the oldest server handled them the
// second.
func TestMeasureOracles(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	b := bucketOf("b", 1, 1)
	p.ask(0, 1, b)
	p.ask(1, 2, b)
	p.serve(3, 2, 0, limiter.Granted)
	p.decide(4, 2, 0, core.Granted)
	// What other servers handle, and what the oldest repeats, has no place.
	p.serve(5, 1, 1, limiter.Granted)
	p.serve(6, 1, 0, limiter.Rejected)
	p.serve(101, 1, 0, limiter.RepeatRejected)
	p.decide(7, 1, 0, core.Rejected)
	// The token is free again; nobody grants it in time, but both oracles do.
	p.ask(200, 3, b)
	p.decide(260, 3, -1, core.TimedOut)
	// A place is not later than the client's decision: this one comes before the next.
	p.ask(400, 4, b)
	p.ask(401, 5, b)
	p.serve(402, 4, 1, limiter.Granted)
	p.decide(403, 4, 1, core.Granted)
	p.serve(404, 5, 0, limiter.Granted)
	p.serve(405, 4, 0, limiter.Rejected)
	p.decide(406, 5, 0, core.Granted)
	// Nothing is asked, or nothing sent: the oracles do not see it.
	p.submit(600, 6, 0, 0, nil)
	p.decide(600, 6, -1, core.Granted)
	p.submit(601, 7, 0, 0, core.ErrNoServers)
	m := p.finish()
	arrival := OracleCounts{Judged: 4, FalseGrant: 1, UndecidedGrant: 1, HealthJudged: 4, HealthFalse: 1, SplitJudged: 2}
	if m.Arrival != arrival {
		t.Errorf("in arrival order: %+v, want %+v", m.Arrival, arrival)
	}
	submit := OracleCounts{
		Judged: 4, FalseGrant: 2, FalseDenial: 1, UndecidedGrant: 1, HealthJudged: 4, HealthFalse: 3, SplitJudged: 2, SplitFalse: 1,
	}
	if m.Submit != submit {
		t.Errorf("in submit order: %+v, want %+v", m.Submit, submit)
	}
	if got := m.Timeline.Bins[4].False; got != 1 {
		t.Errorf("%d false decisions in the bin of 400 ms, want 1", got)
	}
	wants(t, m, map[string]float64{
		"requests": 7, "refused_percent": 100.0 / 7, "timed_out_percent": 100.0 / 7, "health_correct_percent": 75,
		"false_grants": 1, "false_denials": 0, "false_grants_percent": 25, "disagreed_false_percent": 0,
		"submit_false_grants_percent": 50, "submit_false_denials_percent": 25,
	})
}

// TestMeasureOracleOfMembership tells the oldest server by the ID that the client knew: what runs
// in its place is another one.
func TestMeasureOracleOfMembership(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	b := bucketOf("b", 1, 1)
	p.ask(0, 1, b)
	p.ask(1, 2, b)
	p.up(2, 0, 9000)
	p.serve(3, 2, 0, limiter.Granted) // not by the oldest of those asked: no place
	p.serve(4, 1, 1, limiter.Granted)
	p.put(&Record{At: 5 * at, Kind: RecordDecide, Request: 1, Granted: true, Completion: &core.Completion{Outcome: core.Granted, Server: 2000}})
	p.put(&Record{At: 6 * at, Kind: RecordDecide, Request: 2, Completion: &core.Completion{Outcome: core.Rejected, Server: 2000}})
	if m := p.finish(); m.Arrival.Judged != 2 || m.Arrival.FalseGrant+m.Arrival.FalseDenial != 0 {
		t.Errorf("%+v, want no false decision", m.Arrival)
	}
}

// TestMeasureOracleReports shows the oracles reports: each once, in arrival order when the oldest
// server handles it, or a horizon after it was sent.
func TestMeasureOracleReports(t *testing.T) {
	tracker := ident.Tracker("work", 10_000, 1, 1)
	guard := wire.Guard{Tracker: tracker, TTL: 10_000, MaxSamples: 1, MinSamples: 1, Threshold: 50}
	for _, tt := range []struct {
		name          string
		server        int // that handles the report at 30 ms
		asked         time.Duration
		submit, place bool // whether the oracles grant a request that is handled at once
	}{
		{"before it was sent", 0, 10, true, true},
		{"sent, not handled", 0, 25, false, true},
		{"handled by the oldest", 0, 35, false, false},
		{"handled by another", 1, 35, false, true},
		{"a horizon later", 1, 79, false, true},
		{"at the horizon", 1, 80, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newScript(t, scriptScenario(), MeasureOptions{})
			p.put(&Record{Kind: RecordMembership, Servers: []core.Server{{ID: p.ids[0]}, {ID: p.ids[1]}}})
			h := wire.Header{}
			binary.LittleEndian.PutUint64(h.UniqueID[:], 77)
			datagram, err := p.cred.AppendReport(nil, nil, &h, wire.Layout2, []wire.Observation{{
				Tracker: tracker, TTL: 10_000, MaxSamples: 1, MinSamples: 1, Latency: 60,
			}})
			if err != nil {
				t.Fatal(err)
			}
			p.asked[0] = datagram
			steps := []struct {
				ms time.Duration
				do func()
			}{
				{20, func() { p.send(20, 0, 0, core.SendReport); p.send(20, 0, 1, core.SendReport) }},
				{30, func() {
					p.put(&Record{At: 30 * at, Kind: RecordServe, Server: tt.server, Send: core.SendReport, Verdict: limiter.Observed, Payload: datagram})
				}},
				{tt.asked, func() {
					p.submit(tt.asked, 1, 0, 0, nil)
					p.firstSends(tt.asked, 1, nil, []wire.Guard{guard})
					p.serve(tt.asked, 1, 0, limiter.Granted)
					p.decide(tt.asked, 1, 0, core.Granted)
				}},
			}
			for now := range time.Duration(100) {
				for _, s := range steps {
					if s.ms == now {
						s.do()
					}
				}
			}
			m := p.finish()
			if grants := m.Submit.FalseGrant == 0; grants != tt.submit {
				t.Errorf("in submit order the request is granted: %v", grants)
			}
			if grants := m.Arrival.FalseGrant == 0; grants != tt.place {
				t.Errorf("in arrival order the request is granted: %v", grants)
			}
			if m.Datagrams.Report != 2 {
				t.Errorf("%d datagrams of reports, want 2", m.Datagrams.Report)
			}
		})
	}
}

// TestMeasurerRefuses holds what a run cannot say.
func TestMeasurerRefuses(t *testing.T) {
	p := newScript(t, scriptScenario(), MeasureOptions{})
	p.asked[1] = []byte{1, 2, 3}
	p.submit(0, 1, 0, 0, nil)
	p.send(0, 1, 0, core.SendFirst)
	p.decide(1, 1, 0, core.Granted)
	if _, err := p.m.Finish(); err == nil {
		t.Error("a datagram that is none is measured")
	}
	for _, o := range []MeasureOptions{{Bin: -1}, {Bin: 1}, {Keep: -1}} {
		if _, err := NewMeasurer(scriptScenario(), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	s := scriptScenario()
	s.Warmup = s.Length
	if _, err := NewMeasurer(s, MeasureOptions{}); err == nil {
		t.Error("a scenario that is all warmup is taken")
	}
}
