package runner

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/internal/udp"
)

// dnsServer answers the questions of a client under test with what the trace says
// that DNS says now.
type dnsServer struct {
	conn      udp.Conn
	endpoints func(server string) []netip.AddrPort
	ended     chan struct{}

	mu    sync.Mutex
	zone  *conformance.Zone
	asked int
}

func startDNS(stack udp.Stack, endpoints func(string) []netip.AddrPort) (*dnsServer, error) {
	conn, err := stack.Listen(netip.AddrPortFrom(loopbacks[0], 0), udp.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on loopback: %w", err)
	}
	s := &dnsServer{conn: conn, endpoints: endpoints, ended: make(chan struct{}), zone: &conformance.Zone{Fails: true}}
	go s.serve()
	return s, nil
}

// set makes z what is answered from now on.
func (s *dnsServer) set(z *conformance.Zone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone = z
}

func (s *dnsServer) close() {
	s.conn.Close()
	<-s.ended
}

func (s *dnsServer) serve() {
	defer close(s.ended)
	for d := range udp.Datagrams(s.conn, dns.MaxMsgSize) {
		q := new(dns.Msg)
		if q.Unpack(d.Payload()) != nil || q.Response || len(q.Question) != 1 {
			continue
		}
		b, err := s.answer(q).Pack()
		if err != nil {
			continue
		}
		_, _ = s.conn.Write([]udp.Datagram{{Buf: b, N: len(b), Peer: d.Peer}}) // a failure is a loss
	}
}

func (s *dnsServer) answer(q *dns.Msg) *dns.Msg {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(q)
	m.Authoritative = true
	s.asked++
	if s.zone.Fails {
		m.Rcode = dns.RcodeServerFailure
		return m
	}
	question := q.Question[0]
	name := strings.ToLower(question.Name)
	if name == "_ratelimitly._udp."+domain+"." {
		if question.Qtype == dns.TypeSRV {
			m.Answer = s.srv(question.Name)
		}
		return m
	}
	found := false
	for _, r := range s.zone.Records {
		if strings.EqualFold(r.Label+"."+domain+".", name) {
			found = true
			m.Answer = append(m.Answer, s.addresses(&r, &question)...)
		}
	}
	m.Answer = dns.Dedup(m.Answer, nil)
	if !found {
		m.Rcode = dns.RcodeNameError
	}
	return m
}

func (s *dnsServer) srv(name string) []dns.RR {
	var all []dns.RR
	for i, r := range s.zone.Records {
		port := s.endpoints(r.At)[0].Port()
		if r.PortZero {
			port = 0
		}
		// Priority and weight mean nothing, so they are at their most misleading.
		all = append(all, &dns.SRV{
			Hdr: s.header(name, dns.TypeSRV), Priority: uint16(len(s.zone.Records) - i), Weight: uint16(i),
			Target: r.Label + "." + domain + ".", Port: port,
		})
	}
	return all
}

func (s *dnsServer) addresses(r *conformance.Target, q *dns.Question) []dns.RR {
	var addrs []netip.Addr
	for _, text := range r.Addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			addrs = append(addrs, a)
		}
	}
	if len(r.Addresses) == 0 {
		for _, e := range s.endpoints(r.At) {
			addrs = append(addrs, e.Addr())
		}
	}
	var all []dns.RR
	for _, a := range addrs {
		switch {
		case a.Is4() && q.Qtype == dns.TypeA:
			all = append(all, &dns.A{Hdr: s.header(q.Name, dns.TypeA), A: net.IP(a.AsSlice())})
		case a.Is6() && q.Qtype == dns.TypeAAAA:
			all = append(all, &dns.AAAA{Hdr: s.header(q.Name, dns.TypeAAAA), AAAA: net.IP(a.AsSlice())})
		}
	}
	return all
}

func (s *dnsServer) header(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: uint32(s.zone.TTL)}
}
