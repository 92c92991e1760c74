package doctor

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// loss: some requests were answered and others were not.
func (x *examination) loss() {
	s := x.spots(func(e *Endpoint) bool { return e.State == Answers && e.Lost > 0 })
	if len(s) == 0 || x.has("floor") {
		return
	}
	sent, lost := 0, 0
	for _, sp := range s {
		sent, lost = sent+sp.Sent, lost+sp.Lost
	}
	x.diagnosis("loss", Fault,
		fmt.Sprintf("Of %d requests to %s %d got no answer: datagrams are lost on the way, or the server is too busy. A client asks again within its horizon, as often as its policy says.", sent, name(s), lost),
		"Look for loss between the machines (mtr, ping), and for full socket buffers on the server (weir_kernel_drops_total, nstat -az UdpRcvbufErrors); a reason that rises in its weir_dropped_datagrams_total, such as max_rate, is another cause. With more replays in the policy more requests get through.", "")
}

// mostLost reports whether no more than every other request was answered.
func (x *examination) mostLost() bool {
	answered := 0
	for _, s := range x.in(Answers) {
		answered += s.Sent - 2*s.Lost
	}
	return answered <= 0
}

// longLost: long datagrams do not get through, although short ones do.
func (x *examination) longLost() {
	s := x.spots(func(e *Endpoint) bool { return e.State == Answers && e.Long.lost() && e.Lost*2 < e.Sent })
	if len(s) == 0 {
		return
	}
	x.diagnosis("long-lost", Fault,
		fmt.Sprintf("%s %s short requests, but none of %d bytes: the path loses long datagrams.", name(s), verb(s, "answer"), s[0].Long.Bytes),
		"Let the path carry packets of 1228 bytes (MTU of tunnels and VPNs), and fragments; until then ask for few buckets and guards at a time.",
		"A path that loses them one way and one that loses them both ways look the same.")
}

// path: what the client's way shows beside what each address does.
func (x *examination) path() {
	p := x.report.Path
	answering := x.in(Answers)
	slow := x.spots(func(e *Endpoint) bool { return e.State == Answers && time.Duration(e.Median) >= x.horizon })
	switch {
	case p == nil || len(answering) == 0 || x.has("horizon-above-quota"):
		return
	case p.Decided == 0 && len(slow) == len(answering) && p.TimedOut:
		x.tooSlow(slow)
	case p.Decided == 0 && p.TimedOut && x.mostLost():
		return // it is told
	case p.Decided == 0:
		x.diagnosis("client", Fault,
			fmt.Sprintf("Addresses answer one by one, but a client gets no decision: %s.", p.Error),
			"If the round trips come near the horizon, lengthen the policy. If not, keep this output (--json) with a trace of the network: this should not be.", "")
		return
	case len(slow) > 0:
		x.diagnosis("slow-server", Fault,
			fmt.Sprintf("%s %s later than the policy's horizon of %s (median %s), so the answers never count.", name(slow), verb(slow, "answer"), span(x.horizon), span(slow[0].Median)),
			"Take the server out of DNS, or "+x.longer(slow)+".", "")
	case p.Decided < p.Asked && !x.has("loss"):
		x.diagnosis("client-some", Fault,
			fmt.Sprintf("Of %d requests of a client %d were not decided: %s.", p.Asked, p.Asked-p.Decided, p.Error),
			"Run this again with more --probes: loss or a server that is slow at times is likely.", "")
	}
	x.oldestMissing()
	near := x.spots(func(e *Endpoint) bool {
		return e.State == Answers && time.Duration(e.Max) < x.horizon && time.Duration(e.Max) > x.horizon/crowded
	})
	if len(near) > 0 && len(slow) == 0 {
		x.diagnosis("horizon-close", Note,
			fmt.Sprintf("The longest round trip to %s took %s of the horizon of %s: there is little room.", name(near), span(near[0].Max), span(x.horizon)),
			"If timeouts come at times, "+x.longer(near)+".", "")
	}
}

// oldestMissing: while the oldest server does not answer, decisions wait for it.
func (x *examination) oldestMissing() {
	i := slices.IndexFunc(x.report.Servers, func(s Server) bool { return s.Oldest })
	t, err := x.cfg.Client.Policy.Compile()
	if err != nil || i < 0 || x.report.Path.Decided == 0 || t.PreferenceEnd(0) == 0 || slices.Contains(x.report.Path.By, x.report.Servers[i].ID) {
		return
	}
	x.diagnosis("oldest-missing", Note,
		fmt.Sprintf("The oldest server, %v, decides nothing, and each decision waits %s for it (preference of round 0) before another server's answer is taken.", x.report.Servers[i].ID, span(t.PreferenceEnd(0))),
		"Repair it, or take it out of DNS.", "")
}

func (x *examination) tooSlow(slow []spot) {
	x.diagnosis("horizon-too-short", Fault,
		fmt.Sprintf("Every address answers, but later than the policy's horizon of %s: %s %s after %s (median). Key, clock and path are right.", span(x.horizon), name(slow), verb(slow, "answer"), span(slow[0].Median)),
		"Put servers nearer to their clients, or "+x.longer(slow)+".", "")
}

// longer says which policy would leave room for round trips: the same one, its unit
// longer.
func (x *examination) longer(slow []spot) string {
	worst := time.Duration(0)
	for _, s := range slow {
		worst = max(worst, time.Duration(s.Max))
	}
	factor := crowded * float64(worst) / float64(x.horizon)
	unit := time.Duration(math.Ceil(factor*float64(x.cfg.Client.Policy.Unit)/float64(time.Millisecond))) * time.Millisecond
	p := x.cfg.Client.Policy
	p.Unit = unit
	t, err := p.Compile()
	if err != nil {
		return "lengthen the policy"
	}
	says := fmt.Sprintf("lengthen the policy: unit=%v makes the horizon %d ms", unit, t.HorizonMs())
	if quota := x.report.Given.DedupTTLMs; t.HorizonMs() > quota {
		says += fmt.Sprintf(" (this key allows %d; %s)", quota, otherKey(t.HorizonMs()))
	}
	return says
}
