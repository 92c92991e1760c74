package doctor

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	width  = 79 // columns of the text
	indent = 9  // of what stands beside a heading
)

// Write shows a report to a person, in lines of at most 79 columns where the names
// in it allow. The error is w's.
func Write(w io.Writer, r *Report) error {
	t := &text{w: bufio.NewWriter(w)}
	t.given(&r.Given)
	if r.DNS != nil {
		t.dns(r.DNS)
	}
	for i := range r.Servers {
		t.server(&r.Servers[i])
	}
	if r.Path != nil {
		t.path(r.Path)
	}
	t.verdict(r)
	return t.w.Flush()
}

// text writes; errors come out at the end.
type text struct{ w *bufio.Writer }

func (t *text) line(format string, args ...any) {
	fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// beside writes words beside a heading.
func (t *text) beside(heading, words string) {
	t.wrap(fmt.Sprintf("%-*s", indent, heading), strings.Repeat(" ", indent), words)
}

// wrap breaks words into lines, with one text before the first and another before
// each further line.
func (t *text) wrap(first, further, words string) {
	line, empty := first, true
	for word := range strings.FieldsSeq(words) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			t.line("%s", line)
			line, empty = further, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	t.line("%s", line)
}

func (t *text) given(g *Given) {
	legacy := ""
	if g.Legacy {
		legacy = ", legacy format"
	}
	window := "unlimited"
	if g.WindowMs != math.MaxUint32 {
		window = span(time.Duration(g.WindowMs) * time.Millisecond)
	}
	t.beside("key", fmt.Sprintf("%s, ID %d%s; quotas: dedup_ttl %d ms, rate_window %s", g.Mode, g.KeyID, legacy, g.DedupTTLMs, window))
	fits := fmt.Sprintf("the key allows %d (a server may allow less)", g.DedupTTLMs)
	if g.HorizonMs > g.DedupTTLMs {
		fits = fmt.Sprintf("and the key allows ONLY %d", g.DedupTTLMs)
	}
	t.beside("policy", fmt.Sprintf("%s: horizon %d ms, %s", g.Policy, g.HorizonMs, fits))
	t.beside("servers", fmt.Sprintf("%s, layout %d", g.Place, g.Layout))
}

func (t *text) dns(d *DNS) {
	switch d.Failure {
	case Silent:
		t.beside("DNS", "no answer from "+d.Asked+" within "+span(d.Took))
	case Unasked:
		t.beside("DNS", d.Asked+" could not be asked")
	default:
		t.beside("DNS", d.Asked+" answered within "+span(d.Took))
	}
	ttl := ""
	if d.TTL > 0 {
		ttl = ", TTL " + span(d.TTL)
	}
	t.beside("", "SRV "+d.Name+ttl)
	if d.Error != "" {
		t.beside("", d.Error)
	}
	for _, r := range d.Records {
		what := fmt.Sprintf("%s, port %d", r.Target, r.Port)
		if r.Taken {
			t.beside("", "+ "+what)
		} else {
			t.beside("", "- "+what+": "+r.Why)
		}
	}
	for _, h := range d.Hosts {
		if h.Partial != "" {
			t.beside("", fmt.Sprintf("! %s: the question for %s failed: %s", h.Name, h.Partial, h.Error))
		} else if h.Error != "" {
			t.beside("", "! "+h.Error)
		}
		if len(h.Refused) > 0 {
			t.beside("", fmt.Sprintf("! %s: refused %s", h.Name, join(h.Refused)))
		}
	}
	for _, e := range d.Elsewhere {
		t.beside("", fmt.Sprintf("! %s at %s (%s)", count(e.Servers, "server"), e.Name, e.Flag))
	}
}

func (t *text) server(s *Server) {
	facts := ", up " + span(s.Age)
	if s.Age < 0 {
		facts = ", starts " + span(-s.Age) + " from now"
	}
	switch {
	case s.Oldest:
		facts += ", the oldest"
	case s.Future:
		facts += ", skipped by clients"
	}
	t.line("\nserver %v%s", s.ID, facts)
	for i := range s.Endpoints {
		if s.Endpoints[i].State == Answers {
			t.line("  %-24s%-8s%-27s%-11s%s", "address", "lost", "min / median / max", "clock", "1200 B")
			break
		}
	}
	for i := range s.Endpoints {
		t.endpoint(&s.Endpoints[i])
	}
}

func (t *text) endpoint(e *Endpoint) {
	if e.State == Answers {
		t.answers(e)
		return
	}
	words := string(e.State)
	switch {
	case e.State == Stranger:
		words = fmt.Sprintf("answered by server %v instead", e.OtherID)
	case e.State == Clock:
		words = fmt.Sprintf("answers at other stamps only: its clock is %s", signed(e.Offset))
	case e.State == TTLCap:
		words = fmt.Sprintf("answers with a dedup TTL of %s only", span(e.LongestTTL))
	case e.Error != "":
		words += ": " + e.Error
	}
	t.wrap(fmt.Sprintf("  %-24s", e.Addr), strings.Repeat(" ", 26), words)
}

// answers shows the address of a server that answers.
func (t *text) answers(e *Endpoint) {
	long := "unknown"
	switch l := e.Long; {
	case l.lost():
		long = "LOST"
	case l != nil && l.Answered < l.Sent && l.Sent > 9: // two more digits have no room
		long = fmt.Sprintf("%d%% lost", (l.Sent-l.Answered)*100/l.Sent)
	case l != nil && l.Answered < l.Sent:
		long = fmt.Sprintf("%d/%d lost", l.Sent-l.Answered, l.Sent)
	case l != nil:
		long = "pass"
	}
	t.line("  %-24s%-8s%-27s%-11s%s", e.Addr, fmt.Sprintf("%d/%d", e.Lost, e.Sent),
		fmt.Sprintf("%s / %s / %s ms", digits(e.Min), digits(e.Median), digits(e.Max)), signed(e.Offset), long)
	if e.From.IsValid() {
		t.line("  %24s answers come from %v", "", e.From)
	}
}

// digits are milliseconds.
func digits(m Millis) string {
	ms := time.Duration(m).Seconds() * 1000
	if ms < 10 {
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// signed is an offset with its sign.
func signed(m Millis) string {
	d := time.Duration(m)
	if d.Abs() < time.Second {
		d = d.Round(time.Millisecond)
		return fmt.Sprintf("%+d ms", d.Milliseconds())
	}
	if d < 0 {
		return "-" + exact(m)
	}
	return "+" + exact(m)
}

func (t *text) path(p *Path) {
	words := fmt.Sprintf("%d of %d decided", p.Decided, p.Asked)
	if p.Asked == 0 {
		words = "none could be made"
	}
	if p.Decided > 0 {
		words += fmt.Sprintf(", in %s at most, by server %s", span(p.Slowest), strings.Join(p.Servers, " and "))
	}
	if p.Replays > 0 {
		words += fmt.Sprintf("; %d after a replay", p.Replays)
	}
	if p.Error != "" {
		words += "; " + shortError(p)
	}
	t.line("")
	t.beside("client", words)
}

// shortError leaves out what the diagnosis says better.
func shortError(p *Path) string {
	if p.TimedOut {
		return "timed out"
	}
	return p.Error
}

func (t *text) verdict(r *Report) {
	t.line("")
	switch r.Verdict {
	case Well:
		t.line("All is well.")
	case Degraded:
		t.line("Degraded: clients get decisions, but:")
	case NoDecision:
		t.line("No decision is possible:")
	}
	n := 0
	for _, d := range r.Diagnoses {
		mark := "Note. "
		if d.Severity == Fault {
			n++
			mark = fmt.Sprintf("%d. ", n)
		}
		t.line("")
		t.wrap(mark, "   ", d.Says)
		if d.Do != "" {
			t.wrap("   -> ", "      ", d.Do)
		}
		if d.Unsure != "" {
			t.wrap("   ?  ", "      ", d.Unsure)
		}
	}
}
