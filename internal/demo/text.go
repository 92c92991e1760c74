package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// Text is the [Narrator] that prints plain words, one line at a time. Its zero
// value is not usable: see [NewText].
type Text struct {
	w       io.Writer
	command string // how the user calls weir
	style   bool
	failed  func(error)
	system  string
	act     Act
}

// NewText returns a narrator that prints to w. command is how the user calls the
// weir command, for the commands to try next. With style it marks headings and
// results in the way that terminals understand. failed is called when w takes
// nothing more, which is a reason to end; it may be called more than once.
func NewText(w io.Writer, command string, style bool, failed func(error)) *Text {
	return &Text{w: w, command: command, style: style, failed: failed}
}

// Tell implements [Narrator].
func (t *Text) Tell(e Event) {
	switch e := e.(type) {
	case Opening:
		t.system = e.System
		t.line("Weir answers one question before work starts: may it? Here it is at work,")
		t.line("for %d seconds. Two r-servers, DNS and a client run on loopback, and leave", int(e.Expected.Seconds()))
		t.line("nothing behind. Ctrl-C ends it.")
	case ActBegins:
		t.begin(e.Act)
	case KeyMade:
		t.line("  key       %s in %s", e.Key, e.File)
	case ChildServes:
		t.serves(e)
	case OldestIs:
		t.line("            %s is the oldest, by its ID: its answer is preferred", e.Name)
	case Found:
		t.line("  client    found %d servers in %v, at %s", e.Servers, round(e.Took), e.Service)
	case Asked:
		t.asked(e)
	case Read:
		t.read(e)
	case Reported:
		t.line("  %d reports that the work took %v", e.Reports, e.Latency)
	case LoadBegins, LoadRow, Killed, Removed, Dropped:
		t.underLoad(e)
	case Checked:
		t.checked(Check(e))
	case Summary:
		t.summary(e)
	case Farewell:
		t.farewell()
	case Keeping:
		t.keeping(e)
	}
}

func (t *Text) line(format string, args ...any) {
	if _, err := fmt.Fprintf(t.w, format+"\n", args...); err != nil {
		t.failed(err)
	}
}

func (t *Text) mark(code, s string) string {
	if !t.style {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

const (
	bold  = "1"
	green = "32"
	red   = "31"
)

var headings = map[Act][]string{
	ActSetUp:  {"Start"},
	ActTokens: {"Ask before you work", "The bucket checkout holds 5 tokens a minute, and each question takes one."},
	ActAtomic: {
		"Several limits, decided as one",
		"Alice may use 3 a minute, everybody together 100. Each question takes 2",
		"of both, or nothing.",
	},
	ActGuard: {
		"A latency guard",
		"Whoever works on the inventory reports how long it took. At a median of",
		"100 ms or more nobody is let in, and no token is taken. Then one now and",
		"then, to see whether it is fast again.",
	},
	ActFailover: {
		"Kill the oldest server under load",
	},
	ActSummary: {"Summary"},
}

func (t *Text) begin(a Act) {
	t.act = a
	h := headings[a]
	t.line("")
	t.line("%s", t.mark(bold, fmt.Sprintf("%d/%d %s", a, ActSummary, h[0])))
	for _, l := range h[1:] {
		t.line("  %s", l)
	}
}

func (t *Text) serves(e ChildServes) {
	if e.ID == 0 {
		t.line("  DNS       process %d serves the zone rl.test on %s", e.PID, e.Addr)
		return
	}
	t.line("  server %s  process %d on %s, ID %v", e.Name, e.PID, e.Addr, e.ID)
}

func (t *Text) asked(e Asked) {
	outcome := "granted "
	if !e.Decision.Granted() {
		outcome = "REJECTED"
	}
	var why []string
	for _, g := range e.Decision.Guards() {
		relation := "below"
		if !g.Passed {
			relation = "not below"
		}
		why = append(why, fmt.Sprintf("%s takes %v, %s %v", g.Guard.Tracker.Name(), g.Latency, relation, g.Guard.Threshold))
	}
	for _, r := range e.Decision.Resources() {
		s := fmt.Sprintf("%s: %d of %d used", r.Resource.Bucket.Name(), r.ActualRate, r.Resource.Bucket.Limit())
		if r.Deficit > 0 {
			s += fmt.Sprintf(", %d missing", r.Deficit)
		}
		why = append(why, s)
	}
	t.line("%s", strings.TrimRight(fmt.Sprintf("  ask %d  %s by %s in %-8v  %s", e.N, outcome, e.By, round(e.Took), strings.Join(why, "; ")), " "))
}

func (t *Text) read(e Read) {
	parts := make([]string, len(e.Resources))
	for i, r := range e.Resources {
		parts[i] = bucketState(r)
	}
	t.line("  read   %s", strings.Join(parts, "; "))
}

func bucketState(r weir.ResourceResult) string {
	return fmt.Sprintf("%s: %d of %d used", r.Resource.Bucket.Name(), r.ActualRate, r.Resource.Bucket.Limit())
}

func (t *Text) checked(c Check) {
	if c.Kept {
		t.line("  %s %s (%s)", t.mark(green, "ok"), c.Promise, c.Got)
		return
	}
	t.line("  %s %s (%s)", t.mark(red, "FAILED"), c.Promise, c.Got)
}

func (t *Text) underLoad(e Event) {
	switch e := e.(type) {
	case LoadBegins:
		t.line("  Each question goes to both servers. The oldest one's answer counts, after")
		t.line("  %v the other's; without any, the client asks again, for up to %v.", e.Wait, round(e.Horizon))
		t.line("  %d callers ask, each up to %d times a second.", e.Callers, int(time.Second/e.Every))
		t.line("")
		t.line("   time  servers              decisions  failed  by A  by B     median  99%% below")
	case LoadRow:
		st := e.Stats
		t.line("  %4.1fs  %-20s %9d %7d %5d %5d %10v %10v", e.At.Seconds(), phaseNames[st.Phase], st.Decisions, st.Failed,
			st.By["A"], st.By["B"], round(st.P50), round(st.P99))
	case Killed:
		how := "SIGKILL"
		if t.system == "windows" {
			how = "terminated"
		}
		t.line("         -- server %s, process %d, is dead (%s) while they ask", e.Name, e.PID, how)
	case Removed:
		t.line("         -- its record is taken out of DNS, as an operator would do")
	case Dropped:
		t.line("         -- the client knows %v later (the TTL is 1 s here, 5 s by default)", round(e.Took))
	}
}

var phaseNames = [phases]string{"both alive", "oldest dead, in DNS", "oldest out of DNS"}

func (t *Text) summary(e Summary) {
	r := e.Result
	t.line("  servers              decisions  failed  by A  by B     median  99%% below")
	for _, p := range r.Phases {
		t.line("  %-20s %9d %7d %5d %5d %10v %10v", phaseNames[p.Phase], p.Decisions, p.Failed,
			p.By["A"], p.By["B"], round(p.P50), round(p.P99))
	}
	t.line("  While the oldest is dead and DNS still names it, each decision waits %v for it", e.Wait)
	t.line("  (the request policy's unit times its preference in the first round, U*P(0)).")
	t.line("")
	kept := 0
	for _, c := range r.Checks {
		if c.Kept {
			kept++
		}
	}
	result := t.mark(green, fmt.Sprintf("%d of %d promises kept", kept, len(r.Checks)))
	if kept < len(r.Checks) {
		result = t.mark(red, fmt.Sprintf("%d of %d promises kept", kept, len(r.Checks)))
	}
	t.line("  %s, in %.1f seconds.", result, r.Elapsed.Seconds())
	for _, c := range r.Checks {
		if !c.Kept {
			t.line("  %s %s (%s)", t.mark(red, "FAILED"), c.Promise, c.Got)
		}
	}
}

func (t *Text) farewell() {
	t.line("")
	t.line("%s", t.mark(bold, "Try next"))
	width := len(t.command) + len(" key new --id 7 --out shop.key  ")
	for _, next := range [][2]string{
		{" demo --keep", "the same servers, left running for your client"},
		{" key new --id 7 --out shop.key", "a key of your own"},
		{" serve --help", "a server of your own"},
	} {
		t.line("  %-*s %s", width, t.command+next[0], next[1])
	}
}

func (t *Text) keeping(e Keeping) {
	t.line("")
	t.line("%s", t.mark(bold, "Serving until Ctrl-C"))
	for _, s := range e.Servers {
		t.serves(s)
	}
	t.line("  The last one has taken the dead one's place. Point a client at them, in another terminal:")
	t.line("")
	if t.system == "windows" {
		t.line(`    $env:WEIR_KEY = Get-Content "%s"`, e.KeyFile)
		t.line(`    $env:WEIR_DOMAIN = "%s"`, e.Domain)
		t.line(`    $env:WEIR_RESOLVER = "%s"`, e.Resolver)
	} else {
		t.line(`    export WEIR_KEY="$(cat '%s')"`, e.KeyFile)
		t.line(`    export WEIR_DOMAIN=%s WEIR_RESOLVER=%s`, e.Domain, e.Resolver)
	}
	t.line("    %s acquire --bucket mine=5/1m", t.command)
	t.line("")
}
