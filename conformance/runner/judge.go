package runner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/policy"
)

// window is how far from its instant something may be seen. Early is little: what a
// client waits for it must wait for, and only its way from the submit to the first
// datagram makes it look early. Late is what a busy machine may add.
type window struct{ early, late time.Duration }

func (p *play) timeline() *policy.Timeline {
	numbers := p.trace.Policy
	numbers.Unit *= p.scale
	q, err := numbers.Policy()
	if err != nil {
		panic(err) // newPlay has compiled it
	}
	t, err := q.Compile()
	if err != nil {
		panic(err)
	}
	return t
}

// tolerance is a part of the shortest time between two instants of the policy, so
// that what belongs to one is not taken for the other's.
func (p *play) tolerance() window {
	least := shortestGap(p.timeline())
	return window{early: least / 4, late: least / 2}
}

// shortestGap is the shortest time between two instants of a policy.
func shortestGap(t *policy.Timeline) time.Duration {
	var instants []time.Duration
	for k := range t.Rounds() + 1 {
		instants = append(instants, t.Start(k), t.PreferenceEnd(k))
	}
	instants = append(instants, t.Horizon())
	slices.Sort(instants)
	least := time.Duration(math.MaxInt64)
	for i, at := range instants[1:] {
		if gap := at - instants[i]; gap > 0 {
			least = min(least, gap)
		}
	}
	return least
}

// expected is an output of the trace, as an offset from its request.
type expected struct {
	at   time.Duration
	send *conformance.Send
}

// judge compares what was seen with what the trace says.
func (p *play) judge() {
	for _, a := range p.order {
		if a.report != nil {
			p.judgeReport(a)
			continue
		}
		p.judgeSends(a)
		p.judgeEnd(a)
	}
	if p.trace.Real { // stretched, a client would have more time to follow advice than the core had
		p.judgePorts()
	}
}

func (p *play) outputs(a *asked) (sends []expected, decide *conformance.Decide, fail *conformance.Fail, end time.Duration) {
	for i := range p.trace.Events {
		e := &p.trace.Events[i]
		at := time.Duration((e.At - a.at) * p.scale)
		switch {
		case e.Send != nil && e.Send.Request == a.submit.ID:
			sends = append(sends, expected{at, e.Send})
		case e.Decide != nil && e.Decide.Request == a.submit.ID:
			decide, end = e.Decide, at
		case e.Fail != nil && e.Fail.Request == a.submit.ID:
			fail, end = e.Fail, at
		}
	}
	return sends, decide, fail, end
}

// rules names what is amiss with a send that is missing.
var rules = map[string]string{"first": "fan-out", "replay": "replay", "delivery": "completion-delivery"}

func (p *play) judgeSends(a *asked) {
	want, _, _, _ := p.outputs(a)
	tolerance := p.tolerance()
	left := slices.Clone(a.sends)
	for _, w := range want {
		i := slices.IndexFunc(left, func(d *datagram) bool {
			off := d.at.Sub(a.anchor)
			return d.server == w.send.To && d.address == w.send.Address && off >= w.at-tolerance.early && off <= w.at+tolerance.late
		})
		if i < 0 {
			p.in.fail(rules[w.send.Why], secRounds, fmt.Sprintf("%s sent to %s at %v (%s)", a.submit.ID, p.where(w.send.To, w.send.Address), w.at, w.send.Why),
				"%s", p.sayArrivals(a, w.send.To, w.send.Address))
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, d := range left {
		off := d.at.Sub(a.anchor)
		rule, section := "sends", secRounds
		switch {
		case off >= p.horizon():
			rule = "horizon"
		case !slices.ContainsFunc(want, func(w expected) bool { return w.send.To == d.server }):
			rule, section = "membership", secDiscovery
		}
		p.in.fail(rule, section, fmt.Sprintf("no such send of %s", a.submit.ID), "one to %s at %v", p.where(d.server, d.address), off.Round(time.Millisecond))
	}
}

func (p *play) where(server string, address int) string {
	if max(1, p.trace.Server(server).Addresses) > 1 {
		return fmt.Sprintf("%s's address %d", server, address)
	}
	return server
}

func (p *play) sayArrivals(a *asked, server string, address int) string {
	var at []string
	for _, d := range a.sends {
		if d.server == server && d.address == address {
			at = append(at, d.at.Sub(a.anchor).Round(time.Millisecond).String())
		}
	}
	if len(at) == 0 {
		return "none to " + server
	}
	return "those at " + strings.Join(at, ", ")
}

func (p *play) judgeEnd(a *asked) {
	sends, decide, fail, at := p.outputs(a)
	var want string
	if decide != nil {
		want = fmt.Sprintf("%s at %v", sayDecide(decide.Granted, decide.By), at)
	} else {
		want = fmt.Sprintf("failed, %s, at %v", fail.Reason, at)
	}
	want = a.submit.ID + " " + want
	if len(a.ends) != 1 {
		p.in.fail("completion", secRounds, want+", once", "%d completions", len(a.ends))
		return
	}
	l := a.ends[0]
	from := a.anchor
	tolerance := p.tolerance()
	if len(sends) == 0 || from.IsZero() { // nothing is sent: the way to the client counts too
		from, tolerance.late = a.told, tooLate
	}
	off := l.at.Sub(from)
	got := p.sayReply(&l.reply)
	rule := "decision"
	if fail != nil {
		rule = "timeout"
	}
	if got != p.sayWanted(decide, fail) || off < at-tolerance.early || off > at+tolerance.late {
		p.in.fail(rule, secRounds, want, "%s at %v", got, off.Round(time.Millisecond))
		return
	}
	p.judgeResults(a, decide, &l.reply)
}

func sayDecide(granted bool, by string) string {
	word := "rejected"
	if granted {
		word = "granted"
	}
	if by == "" {
		by = "nobody"
	}
	return word + " by " + by
}

func (p *play) sayWanted(d *conformance.Decide, f *conformance.Fail) string {
	if d != nil {
		return sayDecide(d.Granted, d.By)
	}
	return "failed, " + f.Reason
}

func (p *play) sayReply(r *conformance.Reply) string {
	switch r.Event {
	case "decided":
		by := r.Server
		for _, s := range p.trace.Servers {
			if s.ID == r.Server {
				by = s.Name
			}
		}
		if by == "0" {
			by = ""
		}
		return sayDecide(r.Granted, by)
	case "failed":
		return "failed, " + r.Reason
	}
	return r.Event
}

// judgeResults holds the numbers of a decision, where the client tells them, to
// those of the answer that decided.
func (p *play) judgeResults(a *asked, decide *conformance.Decide, r *conformance.Reply) {
	if decide == nil || decide.By == "" {
		return
	}
	var by *conformance.Answer
	for i := range p.trace.Events {
		e := p.trace.Events[i].Answer
		if e != nil && e.Of == a.submit.ID && e.From == decide.By && e.Counts == "counted" {
			by = e
		}
	}
	if by == nil || by.Blocks != nil {
		return
	}
	for i, g := range r.Guards {
		passed := i < len(a.submit.Guards) && by.Latency < a.submit.Guards[i].Threshold
		if g.Latency != by.Latency || g.Passed != passed {
			p.in.fail("results", "docs/protocol.md#answers", fmt.Sprintf("guard %d at %d ms, passed: %v", i, by.Latency, passed), "%d ms, passed: %v", g.Latency, g.Passed)
		}
	}
	for i, x := range r.Resources {
		if x.Deficit != by.Deficit {
			p.in.fail("results", "docs/protocol.md#answers", fmt.Sprintf("a deficit of %d", by.Deficit), "%d for resource %d", x.Deficit, i)
		}
	}
}

// judgeReport holds a report to have come to every server, whole and once.
func (p *play) judgeReport(a *asked) {
	var want []string
	for i := range a.report.Observations {
		want = append(want, sayObservation(encodeObservation(&a.report.Observations[i], p.in.layout)))
	}
	slices.Sort(want)
	to := map[string]bool{}
	for i := range p.trace.Events {
		if s := p.trace.Events[i].Send; s != nil && s.Report == a.report.ID {
			to[s.To] = true
		}
	}
	for _, s := range p.trace.Servers {
		var got []string
		for _, d := range a.sends {
			if d.server != s.Name {
				continue
			}
			if d.report.Layout != p.in.layout {
				p.in.fail("layout", secLayouts, p.in.layout.String(), "%v in a report", d.report.Layout)
			}
			for i := range d.report.Len() {
				got = append(got, sayObservation(d.report.At(i)))
			}
		}
		slices.Sort(got)
		if to[s.Name] && !slices.Equal(got, want) {
			p.in.fail("report", secPDU, fmt.Sprintf("%d observations at %s, once", len(want), s.Name), "%d: %v", len(got), got)
		}
	}
	if len(a.ends) != 1 || a.ends[0].reply.Event != "reported" {
		p.in.fail("report", secPDU, "reported, once, without waiting for anybody", "%d events", len(a.ends))
	}
}

// judgePorts holds source ports to have changed where the trace says so, and not
// elsewhere.
func (p *play) judgePorts() {
	ports := map[int]uint16{} // by the number of changes before
	last := -1
	for i := range p.trace.Events {
		s := p.trace.Events[i].Send
		if s == nil || s.Port == nil || s.Why != "first" {
			continue
		}
		a := p.asked[s.Request]
		from, ok := a.began[s.To]
		if !ok {
			continue // it is missing, which is told already
		}
		port, seen := ports[*s.Port]
		switch {
		case !seen && last >= 0:
			p.judgeChange(ports[last], from.Port(), s.Request)
		case seen && port != from.Port():
			p.in.fail("port", secSteering, fmt.Sprintf("%s from the same port as before, %d", s.Request, port), "%d", from.Port())
		}
		ports[*s.Port] = from.Port()
		last = *s.Port
	}
}

// judgeChange holds a new source port to be the next free one of the range.
func (p *play) judgeChange(old, now uint16, request string) {
	const occupied = 256 // ports in a row that others may hold
	next, size := int(old)+1, lastPort-firstPort+1
	if int(old) < firstPort || next > lastPort {
		next = firstPort
	}
	if now == old {
		p.in.fail("port", secSteering, fmt.Sprintf("%s from another port than %d, as was advised", request, old), "the same")
		return
	}
	if int(now) < firstPort || (int(now)-next+size)%size > occupied {
		p.in.fail("port", secSteering, fmt.Sprintf("%s from the first free port from %d on", request, next), "%d", now)
	}
}

// The range of ports that steering walks through.
const (
	firstPort = 49152
	lastPort  = 65535
)
