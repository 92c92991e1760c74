package dnszone

import (
	"net"
	"net/netip"

	"github.com/miekg/dns"
)

// Times of the SOA record in seconds. There are no secondaries of ours; these
// suit one that somebody sets up all the same.
const (
	soaRefresh = 5
	soaRetry   = 5
	soaExpire  = 3600
)

func (z *Zone) header(owner string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: z.ttl}
}

func (z *Zone) soa(st *state, owner string, ttl uint32) dns.RR {
	h := z.header(owner, dns.TypeSOA)
	h.Ttl = min(ttl, z.ttl)
	return &dns.SOA{
		Hdr: h, Ns: z.ns, Mbox: "hostmaster." + z.name, Serial: st.serial,
		Refresh: soaRefresh, Retry: soaRetry, Expire: soaExpire, Minttl: negativeTTL,
	}
}

// hinfo is the answer to ANY that RFC 8482 defines: small, true, and no help to
// whoever looks for large answers to send to others.
func (z *Zone) hinfo(owner string) dns.RR {
	return &dns.HINFO{Hdr: z.header(owner, dns.TypeHINFO), Cpu: "RFC8482"}
}

// services returns the SRV records and the addresses of their targets.
func (z *Zone) services(st *state, owner string) (srv, extra []dns.RR) {
	for _, h := range st.hosts {
		target := h.id.Label() + "." + z.name
		for _, port := range h.ports {
			srv = append(srv, &dns.SRV{Hdr: z.header(owner, dns.TypeSRV), Target: target, Port: port})
		}
		if len(extra) < maxUDP/16 { // an address record takes 16 bytes at least: more never fit
			extra = z.addresses(extra, target, h, dns.TypeANY)
		}
	}
	return srv, extra
}

// addresses appends a host's A records, AAAA records, or both (ANY).
func (z *Zone) addresses(to []dns.RR, owner string, h *host, qtype uint16) []dns.RR {
	if h == nil {
		return to
	}
	if qtype == dns.TypeA || qtype == dns.TypeANY {
		for _, ip := range h.v4 {
			to = append(to, &dns.A{Hdr: z.header(owner, dns.TypeA), A: netIP(ip)})
		}
	}
	if qtype == dns.TypeAAAA || qtype == dns.TypeANY {
		for _, ip := range h.v6 {
			to = append(to, &dns.AAAA{Hdr: z.header(owner, dns.TypeAAAA), AAAA: netIP(ip)})
		}
	}
	return to
}

func netIP(ip netip.Addr) net.IP { return ip.AsSlice() }
