package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// horizonFits: a client with a policy that its key does not allow is refused when
// it is made.
func (x *examination) horizonFits() {
	g := &x.report.Given
	if g.HorizonMs <= g.DedupTTLMs {
		return
	}
	x.diagnosis("horizon-above-quota", Fault,
		fmt.Sprintf("The policy's horizon of %d ms is above the key's quota dedup_ttl of %d ms, so no client can be made of the two.", g.HorizonMs, g.DedupTTLMs),
		fmt.Sprintf("Shorten the policy (--policy \"unit=…\") to %d ms in all; %s.", g.DedupTTLMs, otherKey(g.HorizonMs)), "")
}

// maxDedupTTL is the highest quota dedup_ttl that a key can have, in ms.
const maxDedupTTL = 2000

// otherKey says which key would allow a horizon.
func otherKey(ms uint32) string {
	if ms > maxDedupTTL {
		return fmt.Sprintf("no key allows more than %d ms", maxDedupTTL)
	}
	return fmt.Sprintf("a key issued with --quota dedup-ttl=%dms allows it", (ms+9)/10*10) // it is held in tens
}

// files: this process cannot ask everything, and that is nobody else's fault.
func (x *examination) files() {
	unasked := len(x.in(NoFiles)) > 0
	if d := x.report.DNS; d != nil {
		unasked = unasked || d.Failure == Unasked ||
			slices.ContainsFunc(d.Hosts, func(h Host) bool { return h.Failure == Unasked })
	}
	if unasked {
		x.diagnosis("no-files", Fault,
			"This process may open no more files, so that not all could be asked: too many are open.",
			"Raise the limit (ulimit -n) and run this again. A client under the same limit fails in the same way.", "")
	}
}

// dns says why no servers, or not all of them, were found.
func (x *examination) dns() {
	d := x.report.DNS
	if d == nil {
		return
	}
	for _, e := range d.Elsewhere {
		x.diagnosis("dns-other-name", Fault,
			fmt.Sprintf("There are no servers at %s, but there %s at %s: the domain and the zone were taken for each other.", d.Name, are(e.Servers, "server"), e.Name),
			"Use "+e.Flag+" instead.", "")
	}
	x.otherKeysDomain()
	switch found := len(d.Elsewhere) > 0; {
	case found:
	case d.Failure == Unasked: // told as such
	case d.Failure == Silent:
		x.diagnosis("dns-silent", Fault,
			fmt.Sprintf("No DNS server answered (%s).", d.Asked),
			"Is it running? (weir serve --dns and weir dns serve DNS while they run.) Check the address and port of the resolver, and that UDP and TCP reach it. A server's own DNS is named with --resolver=IP:PORT.",
			"Nothing is known about the servers: they were not asked.")
	case d.Failure == Refused:
		x.diagnosis("dns-refused", Fault,
			fmt.Sprintf("DNS (%s) does not answer for the name %s: %s.", d.Asked, d.Name, d.Error),
			"Check the zone's name for mistakes, and that --resolver names a server that serves the zone or asks others for it.", "")
	case d.Failure == NoName:
		x.diagnosis("dns-no-name", Fault,
			fmt.Sprintf("DNS says that there is no name %s.", d.Name),
			"Check the zone or domain for mistakes, and that the key's ID is right ("+fmt.Sprint(x.report.Given.KeyID)+"): a zone may list the key IDs that have servers in it (keys, in the members file).",
			"Another DNS server may know more: a zone that is not delegated is known to its own servers only; name one with --resolver=IP:PORT.")
	case d.Failure == NoRecord:
		x.diagnosis("dns-no-records", Fault,
			fmt.Sprintf("The name %s has no SRV records that name a server: no server is registered there.", d.Name),
			"Start a server with --dns and --zone, or enter it in the members file of weir dns. A server that is being stopped leaves DNS first.", "")
	}
	x.records()
}

// are is a count with its verb.
func are(n int, noun string) string {
	if n == 1 {
		return "is 1 " + noun
	}
	return "are " + count(n, noun)
}

// otherKeysDomain: a domain that is that of another key.
func (x *examination) otherKeysDomain() {
	c := &x.cfg.Client
	_, id, ok := keyDomain(c.Domain)
	if !ok || id == c.Key.ID() {
		return
	}
	x.diagnosis("other-keys-domain", severityOf(len(x.in(Answers)) == 0),
		fmt.Sprintf("The domain %s is by its name that of the key with ID %d, and this key has ID %d.", c.Domain, id, c.Key.ID()),
		fmt.Sprintf("Use the key of that domain, or --domain=c-%d.… for this one.", c.Key.ID()), "")
}

func severityOf(fault bool) Severity {
	if fault {
		return Fault
	}
	return Note
}

// records says what is wrong with records that were found.
func (x *examination) records() {
	d := x.report.DNS
	var odd, late, rest []string
	taken := 0
	for _, r := range d.Records {
		switch {
		case r.Taken:
			taken++
		case r.unasked: // told as such
		case r.future:
			late = append(late, r.Target)
		case r.ID == 0 || r.Port == 0:
			odd = append(odd, fmt.Sprintf("%s (%s)", r.Target, r.Why))
		default:
			rest = append(rest, fmt.Sprintf("%s (%s)", r.Target, r.Why))
		}
	}
	if len(odd) > 0 {
		x.diagnosis("dns-no-target", Fault,
			fmt.Sprintf("%s of SRV records name no r-server, and clients skip them: %s.", count(len(odd), "target"), strings.Join(first(odd), ", ")),
			"Name each server s-<server ID> as its first label, with its port; the ID is in its log line \"serving\".", "")
	}
	if len(rest) > 0 {
		x.diagnosis("dns-no-addresses", Fault,
			fmt.Sprintf("%s cannot be used: %s.", count(len(rest), "target"), strings.Join(first(rest), ", ")),
			"Give the target an A or AAAA record with the server's own address; clients take up to 16 servers and 4 addresses of each.", "")
	}
	if len(late) > 0 {
		x.future(late, taken)
	}
	for _, h := range d.Hosts {
		if h.Partial != "" && h.Failure != Unasked {
			x.diagnosis("dns-half", Fault,
				fmt.Sprintf("DNS gives addresses of %s, but the question for %s failed: %s.", h.Name, h.Partial, h.Error),
				"Look at the DNS server: it should say that there are none, if there are none.", "")
		}
	}
}

// future: servers that a client skips, because their IDs say that they start later
// than now. That its clock is behind is likely, and known where they answered.
func (x *examination) future(late []string, taken int) {
	if slices.ContainsFunc(x.in(Clock), func(s spot) bool { return s.Future }) {
		return // the clock is known to be wrong, and by how much
	}
	most := Millis(0)
	for _, s := range x.report.Servers {
		most = min(most, s.Age)
	}
	says := fmt.Sprintf("%s by %s up to %s from now, so clients skip %s.", starts(len(late)), "this machine's clock", span(-most), them(len(late)))
	do := "Check this machine's clock against another: it is most likely behind, by at least that much. Run NTP."
	unsure := "The servers' clocks may be ahead instead, or the IDs in DNS may be made up."
	if taken > 0 && len(x.in(Answers)) > 0 {
		do = "Other servers answer at this machine's time, so look at the clock of the one that was skipped, and start it again."
		unsure = ""
	}
	x.diagnosis("dns-future", Fault, says, do, unsure)
}

func starts(n int) string {
	if n == 1 {
		return "1 server in DNS has started"
	}
	return fmt.Sprintf("%d servers in DNS have started", n)
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// first is the beginning of a list.
func first(list []string) []string {
	if len(list) > 3 {
		return append(list[:3:3], fmt.Sprintf("and %d more", len(list)-3))
	}
	return list
}
