package load

import (
	"encoding/json"
	"strings"
	"testing"
)

// What was the limit is found out by what there is to see of it, and the first that holds is told.
func TestVerdict(t *testing.T) {
	closed := Result{Loop: "closed", Flows: 16, InFlight: 64, Processors: 2, Sent: 1000, Granted: 900, Denied: 100, ClientCPU: 0.5}
	open := Result{Loop: "open", Processors: 2, Sent: 1000, Granted: 1000, ClientCPU: 0.5, Latency: Quantiles{P99: 5000}, Lag: &Quantiles{P99: 100}}
	for _, c := range []struct {
		limit, words string
		of           Result
		change       func(*Result)
	}{
		{limitServer, "used 0.50 of its 2", closed, func(*Result) {}},
		{limitUnknown, "Nobody answered", closed, func(r *Result) { r.Granted, r.Denied, r.ClientCPU = 0, 0, 2 }},
		{limitUnknown, "Nobody gave a right answer: 3 were wrong.", closed, func(r *Result) { r.Granted, r.Denied, r.Wrong = 0, 0, 3 }},
		{limitUnknown, "No answer was in time; 5 came too late.", closed, func(r *Result) { r.Granted, r.Denied, r.Late = 0, 0, 5 }},
		{limitUnknown, "interrupted", closed, func(r *Result) { r.Sent, r.Granted, r.Denied, r.Interrupted = 0, 0, 0, true }},
		{limitUnknown, "No request was due", open, func(r *Result) { r.Sent, r.Granted = 0, 0 }},
		{limitClient, "used 1.90 of its 2", closed, func(r *Result) { r.ClientCPU, r.Machine = 1.9, 1 }},
		{limitClient, "for 60 %", closed, func(r *Result) { r.ClientShare, r.Machine = 0.6, 1 }},
		{limitMachine, "busy for 95 %", closed, func(r *Result) { r.Machine = 0.95 }},
		{limitInFlight, "how few", closed, func(r *Result) { r.InFlight, r.Flows = 7, 1 }},
		{limitServer, "", closed, func(r *Result) { r.InFlight, r.Flows = 8, 8 }},
		{limitServer, "of 1000 requests 20", closed, func(r *Result) { r.Granted, r.Lost, r.Machine = 880, 20, 1 }},
		{limitNone, "kept up", open, func(*Result) {}},
		{limitNone, "kept up", open, func(r *Result) { r.Machine = 1 }},
		{limitServer, "of 1000 requests 20", open, func(r *Result) { r.Granted, r.Lost = 980, 20 }},
		{limitClient, "by 3.0 ms", open, func(r *Result) { r.Lag.P99, r.Granted, r.Lost = 3000, 980, 20 }},
		{limitNone, "", open, func(r *Result) { r.Lag.P99, r.Latency.P99 = 900, 1000 }},
		{limitClient, "left out 500 of 1500", open, func(r *Result) { r.Skipped, r.Granted = 500, 0 }},
	} {
		r := c.of
		if r.Lag != nil {
			lag := *r.Lag
			r.Lag = &lag
		}
		c.change(&r)
		if r.judge(); r.Limit != c.limit || !strings.Contains(r.Verdict, c.words) {
			t.Errorf("want %s, %q; it says %s, %q", c.limit, c.words, r.Limit, r.Verdict)
		}
	}
}

// A table has what a person looks for, and what went wrong by name; JSON takes any result.
func TestTable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.serve("10.0.0.1")
		cfg := w.config(s)
		cfg.Rate, cfg.InFlight = 100, 0
		r := w.run(cfg)
		r.Wrongs["server"], r.Wrong, r.Error, r.Unread, r.Interrupted, r.Skipped = 3, 3, "no way", 4, true, 5
		var text strings.Builder
		if err := WriteTable(&text, r); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"open loop, 100 requests a second from 2 sockets, 1.0 s (interrupted)\n", "answers a second  ", "under another server's ID  ",
			"first error  ", "no way", "errors of reading  ", "skipped, as the client was late", "sent late by", "p99.99", r.Verdict + "\n",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in %s", want, text.String())
			}
		}
		for _, name := range wrongNames {
			if wrongTexts[name] == "" {
				t.Errorf("no text for %s", name)
			}
		}
		if _, err := json.Marshal(&Result{}); err != nil {
			t.Error(err)
		}
	})
}
