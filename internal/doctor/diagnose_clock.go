package doctor

import (
	"fmt"
	"strings"
	"time"
)

// clock: addresses that answered at other stamps only.
func (x *examination) clock() {
	var off []spot
	for _, s := range x.in(Clock, Stranger) {
		switch {
		case s.State == Stranger && abs(s.Offset) <= skew:
		case x.startsAhead(s):
			x.floor(s)
		default:
			off = append(off, s)
		}
	}
	for _, s := range x.spots(func(e *Endpoint) bool { return e.State == Answers && e.Lost > 0 }) {
		if x.startsAhead(s) {
			x.floor(s)
		}
	}
	for len(off) > 0 {
		var alike, rest []spot
		for _, s := range off {
			if abs(s.Offset-off[0].Offset) < closeCall {
				alike = append(alike, s)
			} else {
				rest = append(rest, s)
			}
		}
		x.clockOff(alike)
		off = rest
	}
}

// clockOff is about addresses whose clocks agree with each other.
func (x *examination) clockOff(off []spot) {
	s := off[0]
	side, other := "behind", "ahead of"
	if s.Offset < 0 {
		side, other = "ahead of", "behind"
	}
	by := exact(s.Offset)
	right := x.spots(func(e *Endpoint) bool { return e.State == Answers && abs(e.Offset) < closeCall })
	if len(right) > 0 {
		x.diagnosis("server-clock", Fault,
			fmt.Sprintf("The clock of %s is %s %s this machine's, so it drops every datagram as stale. Other servers agree with this machine, so it is that server's clock which is wrong.", name(off), by, other),
			"Set the clock of that server, run NTP on it, and start the server anew: its ID holds its start time.", "")
		return
	}
	says := fmt.Sprintf("This machine's clock is %s %s that of %s, so every datagram of ours is stale and dropped (servers allow 5 s unless told otherwise). Key and path are right: datagrams with a corrected stamp are answered.", by, side, name(off))
	if abs(s.Offset) <= skew {
		says = fmt.Sprintf("This machine's clock is %s %s that of %s, which allows less than that (--skew). Key and path are right: datagrams with a corrected stamp are answered.", by, side, name(off))
	}
	if quarter(s.Offset) {
		says += " It is a whole number of quarter-hours: a time zone was taken for UTC."
	}
	x.diagnosis("clock", Fault, says,
		fmt.Sprintf("Set this machine's clock %s by %s and keep it right with NTP (chronyc makestep, timedatectl set-ntp true).", direction(s.Offset), by),
		x.unsureOfClock(off))
}

// unsureOfClock: which of two clocks is wrong is only known if a third one says.
func (x *examination) unsureOfClock(off []spot) string {
	if len(distinct(off)) > 1 {
		return ""
	}
	if len(x.report.Servers) == 1 {
		return "With one server it is not known whose clock is wrong: compare both with a third."
	}
	return "No other server says whose clock is wrong: compare both with a third."
}

func direction(offset Millis) string {
	if offset > 0 {
		return "forward"
	}
	return "back"
}

// startsAhead reports whether a server, as this machine's clock has it, was not yet
// there when it was first asked, by no more than the skew allows.
func (x *examination) startsAhead(s spot) bool {
	return s.Heard && s.Offset > 0 && abs(s.Offset) <= skew+closeCall && s.Age < Millis(closeCall) && s.State != Stranger
}

// floor: a server answers nothing that is stamped before its own start.
func (x *examination) floor(s spot) {
	x.diagnosis("floor", Fault,
		fmt.Sprintf("This machine's clock is %s behind that of %s, which has only just started: it answers nothing that is stamped before its start.", exact(s.Offset), s),
		fmt.Sprintf("Wait %s and ask again; then keep both clocks right with NTP.", span(time.Duration(max(s.Offset, Millis(closeCall))))), "")
}

// horizonCapped: an address that answers with a shorter dedup TTL only.
func (x *examination) horizonCapped() {
	s := x.in(TTLCap)
	if len(s) == 0 {
		return
	}
	longest := s[0].LongestTTL
	x.diagnosis("horizon-above-cap", Fault,
		fmt.Sprintf("%s %s requests with a dedup TTL of %d ms, as the policy's horizon asks for, but %s one of %s. Key, clock and path are right.", name(s), verb(s, "drop"), x.ttl(), verb(s, "answer"), span(longest)),
		fmt.Sprintf("Shorten the policy to %s in all, or raise the server's --dedup-ttl-cap, or give it this very key: its quota dedup_ttl counts there too.", span(longest)),
		"The limit lies anywhere between the two.")
}

// clockClose: a clock that is off by less than what costs an answer.
func (x *examination) clockClose() {
	s := x.spots(func(e *Endpoint) bool { return e.State == Answers && abs(e.Offset) >= closeCall })
	if len(s) == 0 || x.has("floor") {
		return
	}
	side := "behind"
	if s[0].Offset < 0 {
		side = "ahead of"
	}
	x.diagnosis("clock-close", Note,
		fmt.Sprintf("This machine's clock is %s %s that of %s. It is answered, but little more is allowed (5 s unless the server is told otherwise), and after a restart of the server less.", exact(s[0].Offset), side, name(s)),
		"Keep both clocks right with NTP.", "")
}

func (x *examination) has(code string) bool {
	for _, d := range x.report.Diagnoses {
		if strings.HasPrefix(d.Code, code) {
			return true
		}
	}
	return false
}

func abs(m Millis) time.Duration { return time.Duration(m).Abs() }

// quarter reports whether an offset is what a wrong time zone makes.
func quarter(offset Millis) bool {
	d := abs(offset)
	return d >= 30*time.Minute-skew && d <= fanZones+skew && (d-d.Round(fanQuarter)).Abs() < skew
}
