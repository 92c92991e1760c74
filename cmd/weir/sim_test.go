package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestProgress holds that a short run tells nothing, and a long one how far it is: in lines, or
// on a terminal in a bar that is gone at the end.
func TestProgress(t *testing.T) {
	begin := time.Unix(0, 0)
	for _, terminal := range []bool{false, true} {
		var errs bytes.Buffer
		p := newProgressTeller(&stdio{err: &errs}, terminal, begin)
		p.tell(begin.Add(quiet-1), time.Second, 4*time.Second)
		if errs.Len() > 0 {
			t.Errorf("terminal %v: within two seconds it says %q", terminal, errs.String())
		}
		p.tell(begin.Add(quiet), time.Second, 4*time.Second)
		p.tell(begin.Add(quiet+1), 2*time.Second, 4*time.Second)
		p.tell(begin.Add(quiet+between), 3*time.Second, 4*time.Second)
		p.finish()
		got := errs.String()
		if !terminal && got != "weir: simulated 25 % of 4s\nweir: simulated 75 % of 4s\n" {
			t.Errorf("it says %q", got)
		}
		if terminal && (!strings.Contains(got, "simulating 4s") || !strings.Contains(got, "75%") || !strings.HasSuffix(got, "\r")) {
			t.Errorf("the bar is %q", got)
		}
	}
}
