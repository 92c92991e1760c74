package dnszone

import (
	"github.com/miekg/dns"
)

const (
	plainSize = 512  // largest answer over UDP to a client without EDNS0
	maxUDP    = 1232 // largest answer over UDP at all: one unfragmented packet
)

// Handle answers one message, as it came over UDP or TCP. It returns nil for
// what must not be answered: something that is itself an answer. It keeps
// nothing of q and changes nothing in it. An answer over UDP has at most 1232
// bytes, or what the client can take; if the records do not fit it has none and
// says so (TC), and the client comes back over TCP.
func (z *Zone) Handle(q *dns.Msg, udp bool) *dns.Msg {
	if q.Response {
		return nil
	}
	m, opt, ok := z.begin(q)
	if ok {
		z.answer(m, q.Question[0])
	}
	finish(m, opt, udp)
	return m
}

// begin starts the answer and checks the message as a whole; false means that
// the answer's code says already all there is to say.
func (z *Zone) begin(q *dns.Msg) (m *dns.Msg, opt *dns.OPT, ok bool) {
	m = &dns.Msg{Compress: true}
	m.Id, m.Opcode, m.Response, m.RecursionDesired = q.Id, q.Opcode, true, q.RecursionDesired
	if q.Opcode != dns.OpcodeQuery {
		m.Rcode = dns.RcodeNotImplemented
		return m, nil, false
	}
	if len(q.Question) != 1 {
		m.Rcode = dns.RcodeFormatError
		return m, nil, false
	}
	m.Question = []dns.Question{q.Question[0]} // with the asker's upper and lower case
	opt, opts := findOPT(q)
	qtype := q.Question[0].Qtype
	switch {
	case opts > 1, opt != nil && opt.Hdr.Name != ".", qtype == dns.TypeOPT:
		m.Rcode = dns.RcodeFormatError
	case opt != nil && opt.Version() != 0:
		m.Rcode = dns.RcodeBadVers
	case q.Question[0].Qclass != dns.ClassINET, transfer(qtype):
		m.Rcode = dns.RcodeRefused
	case len(q.Answer) > 0 || len(q.Ns) > 0:
		m.Rcode = dns.RcodeFormatError
	default:
		return m, opt, true
	}
	return m, opt, false
}

// transfer reports types that are no data but requests to do something: zone
// transfers, key agreement, mailbox bundles; all but ANY.
func transfer(qtype uint16) bool {
	return qtype >= 128 && qtype < dns.TypeANY
}

func findOPT(q *dns.Msg) (opt *dns.OPT, count int) {
	for _, rr := range q.Extra {
		if o, ok := rr.(*dns.OPT); ok {
			opt = o
			count++
		}
	}
	return opt, count
}

// answer fills in what the zone knows about a question.
func (z *Zone) answer(m *dns.Msg, q dns.Question) {
	st := z.state.Load()
	n, h := z.find(st, q.Name)
	if n == outside {
		m.Rcode = dns.RcodeRefused
		return
	}
	m.Authoritative = true
	switch {
	case n == absent:
		m.Rcode = dns.RcodeNameError
	case q.Qtype == dns.TypeANY && n != empty && (n != service || len(st.hosts) > 0):
		m.Answer = []dns.RR{z.hinfo(q.Name)}
	case n == apex && q.Qtype == dns.TypeSOA:
		m.Answer = []dns.RR{z.soa(st, q.Name, z.ttl)}
	case n == apex && q.Qtype == dns.TypeNS:
		m.Answer = []dns.RR{&dns.NS{Hdr: z.header(q.Name, dns.TypeNS), Ns: z.ns}}
		m.Extra = z.addresses(nil, z.ns, z.nsHost, dns.TypeANY)
	case n == service && q.Qtype == dns.TypeSRV:
		m.Answer, m.Extra = z.services(st, q.Name)
	case n == address:
		m.Answer = z.addresses(nil, q.Name, h, q.Qtype)
	}
	if len(m.Answer) == 0 {
		// The SOA says how long "there is nothing" may be believed.
		m.Ns = []dns.RR{z.soa(st, z.name, negativeTTL)}
	}
}

// finish brings the answer to the size that its way allows. Additional records
// are a courtesy: as many as fit into one packet, over TCP too.
func finish(m *dns.Msg, opt *dns.OPT, udp bool) {
	limit := plainSize
	extra := m.Extra
	m.Extra = nil
	if opt != nil {
		limit = min(max(int(opt.UDPSize()), plainSize), maxUDP)
		own := new(dns.OPT)
		own.Hdr.Name, own.Hdr.Rrtype = ".", dns.TypeOPT
		own.SetUDPSize(maxUDP)
		if opt.Do() {
			own.SetDo()
		}
		m.Extra = []dns.RR{own}
	}
	if udp && m.Len() > limit {
		m.Answer, m.Ns, m.Truncated = nil, nil, true
		return
	}
	fixed := m.Extra
	for n := 0; n < len(extra); {
		next := n + sameName(extra[n:])
		m.Extra = append(append([]dns.RR(nil), extra[:next]...), fixed...)
		if m.Len() > limit {
			m.Extra = append(append([]dns.RR(nil), extra[:n]...), fixed...)
			return
		}
		n = next
	}
}

// sameName counts the records at the front that belong to one host: its
// addresses go in together or not at all.
func sameName(rrs []dns.RR) int {
	n := 1
	for n < len(rrs) && rrs[n].Header().Name == rrs[0].Header().Name {
		n++
	}
	return n
}
