package doctor

import (
	"fmt"
	"slices"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
)

// strangers: another server ID answers.
func (x *examination) strangers() {
	for _, s := range x.in(Stranger) {
		if swapped := x.member(s.OtherID); swapped {
			x.diagnosis("swapped", Fault,
				fmt.Sprintf("At %v, named as an address of server %v, server %v answers, which is known too: the addresses are mixed up.", s.Addr, s.ID, s.OtherID),
				"Set the addresses right, in DNS or with --server.", "")
			continue
		}
		do := fmt.Sprintf("Put the new ID into DNS (the members file), or use --server=%v@%v.", s.OtherID, s.Addr)
		x.diagnosis("restarted", Fault,
			fmt.Sprintf("At %v server %v answers, which started %s; named there is %v. Clients count no answers of a server that they were not told of. A server has a new ID after every start.", s.Addr, s.OtherID, x.ago(s.OtherID), s.ID),
			do, "")
	}
}

func (x *examination) member(id ident.ServerID) bool {
	return slices.ContainsFunc(x.report.Servers, func(s Server) bool { return s.ID == id })
}

// ago says when a server started.
func (x *examination) ago(id ident.ServerID) string {
	age := x.report.At.Sub(id.Start())
	if age < 0 {
		return span(-age) + " from now by this clock"
	}
	return span(age) + " ago"
}

// otherAnswers: what came back is no answer of this key's servers.
func (x *examination) otherAnswers() {
	if s := x.in(OtherMode); len(s) > 0 {
		x.diagnosis("other-mode", Fault,
			fmt.Sprintf("%s %s in another authentication mode than the key's, %s.", name(s), verb(s, "answer"), x.report.Given.Mode),
			"Use the key that the server has. An r-server would be silent instead: find out what answers there.", "")
	}
	if s := x.in(OtherKey); len(s) > 0 {
		x.diagnosis("other-key", Fault,
			fmt.Sprintf("%s %s, but not with this key's secret: the server has another key with ID %d, or the answers are changed or forged on their way.", name(s), verb(s, "answer"), x.report.Given.KeyID),
			"Compare the keys of client and server with weir key inspect; an r-server would be silent instead, so find out what answers there.", "")
	}
	if s := x.in(Reflects); len(s) > 0 {
		x.diagnosis("reflected", Fault,
			fmt.Sprintf("What comes back from %s are our own datagrams: something reflects them.", name(s)),
			"Check the address and port: an echo service, a loop in a NAT or a load balancer, but no r-server, is there.", "")
	}
	if s := x.in(Garbage); len(s) > 0 {
		x.diagnosis("no-r-server", Fault,
			fmt.Sprintf("What comes back from %s are no answers of this protocol to what was asked.", name(s)),
			"Check the address and port: something else than an r-server answers there, or a faulty one.", "")
	}
	if s := x.in(OtherForm); len(s) > 0 {
		x.wrongLayout(s)
	}
}

// layout: an address that answers without guards, and with guards in the other
// layout only.
func (x *examination) layout() {
	s := x.spots(func(e *Endpoint) bool { return e.State == Answers && (e.Guards.lost() || e.Seen.OtherLayout > 0) })
	if len(s) == 0 {
		return
	}
	if o := s[0].OtherLayout; s[0].Seen.OtherLayout == 0 && (o == nil || o.Answered < sure) {
		if s[0].Lost > 0 || o != nil && o.Answered > 0 {
			return // lost like others
		}
		x.diagnosis("guards", Fault,
			fmt.Sprintf("%s %s requests without latency guards, and none with one, in either layout.", name(s), verb(s, "answer")),
			"Look at the server: it is faulty, or not an r-server.", "")
		return
	}
	x.wrongLayout(s)
}

func (x *examination) wrongLayout(s []spot) {
	l := x.cfg.Client.Layout
	x.diagnosis("layout", Fault,
		fmt.Sprintf("%s %s requests with latency guards in %v only, and the client is set to %v.", name(s), verb(s, "take"), otherThan(l), l),
		fmt.Sprintf("Use --layout=%d (weir.Config.Layout), or bring the server up to date. Requests without guards are the same in both.", otherThan(l)), "")
}

// mode: what a mode does not protect from.
func (x *examination) mode() {
	s := x.spots(func(e *Endpoint) bool { return exposed(e.Addr) })
	if len(s) == 0 {
		return
	}
	switch x.cfg.Client.Key.Auth() {
	case apikey.AuthNone:
		x.diagnosis("mode-none", Note,
			"The key has mode none, and servers are on other machines: anyone who can reach their ports, or the client's, can forge decisions and take tokens. Nothing here proves who answered.",
			"Use an aes key.", "")
	case apikey.AuthCookie:
		x.diagnosis("mode-cookie", Note,
			"The key has mode cookie, and servers are on other machines: its secret travels in clear in every datagram, and whoever sees one can forge the rest.",
			"Use an aes key.", "")
	}
}
