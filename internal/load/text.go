package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// WriteTable writes what a person wants to know of a result.
func WriteTable(w io.Writer, r *Result) error {
	switch r.Loop {
	case "open":
		fmt.Fprintf(w, "open loop, %.0f requests a second from %s, %.1f s", r.Rate, count(r.Flows, "socket"), r.Seconds)
	default:
		fmt.Fprintf(w, "closed loop, %s in flight from %s, %.1f s", count(r.InFlight, "request"), count(r.Flows, "socket"), r.Seconds)
	}
	if r.Interrupted {
		fmt.Fprint(w, " (interrupted)")
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("answers a second", "%.0f", r.PerSecond)
	row("granted", "%d of %d", r.Granted, r.Sent)
	row("denied", "%d", r.Denied)
	row("lost", "%d", r.Lost)
	row("wrong", "%d", r.Wrong)
	for _, name := range slices.Sorted(maps.Keys(r.Wrongs)) {
		row("  "+wrongTexts[name], "%d", r.Wrongs[name])
	}
	for _, c := range []struct {
		name string
		n    uint64
	}{
		{"late or repeated", r.Late},
		{"reports", r.Reports},
		{"replays", r.Replays},
		{"changes of a port", r.Moves},
		{"skipped, as the client was late", r.Skipped},
		{"not sent", r.Unsent},
		{"errors of reading", r.Unread},
	} {
		if c.n > 0 {
			row(c.name, "%d", c.n)
		}
	}
	if r.Error != "" {
		row("first error", "%s", r.Error)
	}
	row("client", "%.2f of %d processors, %.0f %% of all latency", r.ClientCPU, r.Processors, 100*r.ClientShare)
	if err := t.Flush(); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\nus\tmean\tp50\tp90\tp99\tp99.9\tp99.99\tmax\t\n")
	writeQuantiles(t, "latency", &r.Latency)
	if r.Lag != nil {
		writeQuantiles(t, "sent late by", r.Lag)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", r.Verdict); err != nil {
		return err
	}
	for _, name := range r.Silent {
		if _, err := fmt.Fprintf(w, "No answer at all from %s: the figures are those of the others. weir doctor, with that key and server, finds out why.\n", name); err != nil {
			return err
		}
	}
	return nil
}

// wrongTexts say what the names in Result.Wrongs mean.
var wrongTexts = map[string]string{
	"unreadable":   "not authentic, or no response",
	"stranger":     "to no question of ours",
	"server":       "under another server's ID",
	"shape":        "other guards or resources than asked for",
	"rate":         "granted, with a bucket over its limit",
	"beyond-limit": "tokens granted beyond every limit",
}

func writeQuantiles(w io.Writer, name string, q *Quantiles) {
	if q.N == 0 {
		fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\t-\t\n", name)
		return
	}
	fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", name, q.Mean, q.P50, q.P90, q.P99, q.P999, q.P9999, q.Max)
}

// count is a number of things, as a person says it.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
