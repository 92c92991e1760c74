package doctor

import (
	"fmt"
	"strings"
)

// unreachable: this machine, or one on the way, says that it cannot be done.
func (x *examination) unreachable() {
	if s := x.in(Closed); len(s) > 0 {
		x.diagnosis("port-closed", Fault,
			fmt.Sprintf("Nothing listens at %s: the machine is there and says so (ICMP, port unreachable).", name(s)),
			"Start the server, or set its port right in DNS or --server. It may listen on another address or family: its log line \"serving\" says where.",
			"A firewall that rejects looks the same.")
	}
	if s := x.in(NoRoute); len(s) > 0 {
		x.diagnosis("no-route", Fault,
			fmt.Sprintf("There is no way to %s: %s.", name(s), s[0].Error),
			"Check the address, this machine's routes, and that the other machine is up. A server need not be listed with addresses of a family that its clients do not have.", "")
	}
	if s := x.in(NoFamily); len(s) > 0 {
		x.diagnosis("no-family", Fault,
			fmt.Sprintf("This machine cannot open a socket for %s: %s.", name(s), s[0].Error),
			"Switch the address family on here, or take the address out of DNS.", "")
	}
	if s := x.in(Blocked); len(s) > 0 {
		x.diagnosis("blocked-here", Fault,
			fmt.Sprintf("This machine itself refuses to send to %s: %s.", name(s), s[0].Error),
			"Look at its firewall's rules for outgoing UDP, and at what confines this process (a container, SELinux, a sandbox).", "")
	}
}

// silent: nothing at all came back. What that can be depends on the others.
func (x *examination) silent() {
	s := x.in(NoAnswer)
	if len(s) == 0 {
		return
	}
	answering := x.in(Answers)
	metric := fmt.Sprintf("weir_dropped_datagrams_total on the server (its --admin address; docs/server.md, \"Dropped datagrams\"): a reason that rises while this runs (%s) says what is wrong; if none does, our datagrams do not arrive", reasons)
	from := fmt.Sprintf("; look for them there with tcpdump (udp port %d, from port %d)", s[0].Addr.Port(), s[0].Local)
	if len(answering) > 0 {
		x.silentBeside(s, answering, metric+from)
		return
	}
	if x.someoneHeard() {
		x.diagnosis("silent", Fault,
			fmt.Sprintf("%s %s silent, whatever the stamp, while others answer in the way told above.", name(s), be(s)),
			"Repair what is told above first; then run this again. Look at "+metric+".", "")
		return
	}
	x.diagnosis("silent", Fault,
		fmt.Sprintf("%s %s silent: no answer, no error, at stamps of now and %s around it.", name(s), be(s), x.fanText()),
		"Is the server running, with this key (weir key inspect shows the ID), and is UDP let through both ways? Look at "+metric+from+".",
		fmt.Sprintf("From here these look the same: a server that is down behind a firewall, a firewall that drops, a wrong address, a server without the key ID %d, one that has another secret or mode for it (a server never says \"wrong key\"), and a clock that is off by what was not tried: %s.", x.report.Given.KeyID, untried))
}

// reasons are those for which a server drops datagrams of a client that has
// something wrong.
const reasons = "unknown_key, auth, mode, stale, ttl, floor"

// untried is what the fan leaves out.
const untried = "more than 15 minutes and no whole number of quarter-hours up to 14 hours, nor 1, 2, 7, 30, 31, 365 or 366 days (or less, if the server allows less than 5 s with --skew)"

// silentBeside: some answer, which narrows it.
func (x *examination) silentBeside(s, answering []spot, metric string) {
	same := false
	for _, a := range answering {
		for _, b := range s {
			same = same || a.ID == b.ID
		}
	}
	if same && len(distinct(s)) == 1 {
		x.diagnosis("silent-address", Fault,
			fmt.Sprintf("%s %s silent, while the same server answers at %v: key and clock are right there.", name(s), be(s), answering[0].Addr),
			"Does the server listen on that address and family ([::] is IPv6 alone)? Do a firewall or a route lose that family? Otherwise take the address out of DNS: a client sends to it in vain.",
			"A firewall and a server that does not listen there look the same.")
		return
	}
	x.diagnosis("silent-server", Fault,
		fmt.Sprintf("%s %s silent, at stamps of now and %s around it, while %s. So the key is a good one and this machine's clock is right: the fault is with that server or on the way to it.", name(s), be(s), x.fanText(), others(answering)),
		"Is it running? Does its tenants file have the same key? Does a firewall let UDP through? Look at "+metric+".",
		"From here a dead server, a firewall that drops, a server without this key and one with another secret for it look the same.")
}

func others(answering []spot) string {
	seen := make(map[string]bool)
	var ids []string
	for _, s := range answering {
		if id := s.ID.String(); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 1 {
		return "server " + ids[0] + " answers"
	}
	return "servers " + strings.Join(first(ids), ", ") + " answer"
}

// distinct lists the servers of addresses.
func distinct(s []spot) map[string]bool {
	ids := make(map[string]bool)
	for _, sp := range s {
		ids[sp.ID.String()] = true
	}
	return ids
}

func be(s []spot) string {
	if len(s) == 1 {
		return "is"
	}
	return "are"
}

// fanText says how far the stamps went.
func (x *examination) fanText() string {
	n := 0
	for _, s := range x.spots(func(e *Endpoint) bool { return e.Fan != nil }) {
		n = max(n, s.Fan.Sent)
	}
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d", n)
}

// someoneHeard reports whether an authentic answer came from anyone.
func (x *examination) someoneHeard() bool {
	return len(x.spots(func(e *Endpoint) bool { return e.Heard })) > 0
}
