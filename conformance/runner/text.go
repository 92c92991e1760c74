package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteResult writes a result as a line, and, of one that did not pass, what was
// found, a line each.
func WriteResult(w io.Writer, r *Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %s", r.Verdict, r.Name)
	if r.Took > 0 {
		fmt.Fprintf(&b, " (%.1f s)", r.Took.Seconds())
	}
	if r.Reason != "" {
		fmt.Fprintf(&b, ": %s", r.Reason)
	}
	b.WriteByte('\n')
	if r.Verdict == Failed || r.Verdict == Inconclusive {
		fmt.Fprintf(&b, "    %s\n", r.About)
		for _, f := range r.Findings {
			fmt.Fprintf(&b, "    %s: %s\n        expected %s\n        came     %s\n", f.Section, f.Rule, f.Want, f.Got)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteSummary writes the counts in a line.
func WriteSummary(w io.Writer, s *Summary, took time.Duration) error {
	_, err := fmt.Fprintf(w, "%s: %d passed, %d failed, %d inconclusive, %d skipped in %.0f s\n",
		s.Client, s.Passed, s.Failed, s.Inconclusive, s.Skipped, took.Seconds())
	return err
}

// WriteJSON writes a result as one line of JSON.
func WriteJSON(w io.Writer, r *Result) error {
	return json.NewEncoder(w).Encode(r)
}
