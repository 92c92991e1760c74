package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// query asks for one type of record and follows aliases to it, asking anew where
// an answer stops halfway (an authoritative server knows only its own zones).
func (r *dnsResolver) query(ctx context.Context, name string, qtype uint16) (answer, error) {
	ans, err := r.chase(ctx, name, qtype)
	if err != nil {
		return answer{}, fmt.Errorf("discovery: %s %s: %w", dns.TypeToString[qtype], strings.TrimSuffix(name, "."), err)
	}
	return ans, nil
}

func (r *dnsResolver) chase(ctx context.Context, name string, qtype uint16) (answer, error) {
	if err := checkQuestion(name); err != nil {
		return answer{}, err
	}
	c := chain{name: dns.Fqdn(name), ttl: 1<<31 - 1}
	for {
		asked := c.name
		m, server, err := r.ask(ctx, asked, qtype)
		if err != nil {
			return answer{}, err
		}
		rrs, err := c.follow(m, qtype)
		switch {
		case err != nil:
			return answer{}, fmt.Errorf("%w, says %s", err, server)
		case len(rrs) > 0:
			return answer{records: rrs, ttl: c.lifetime(), server: server}, nil
		case m.Rcode == dns.RcodeNameError:
			return answer{}, fmt.Errorf("%w, says %s; check the name, and that a server is registered in the zone", ErrNoName, server)
		case strings.EqualFold(c.name, asked) || negative(m):
			return answer{}, fmt.Errorf("%w, says %s; check that a server is registered in the zone", errNoData, server)
		}
	}
}

func checkQuestion(name string) error {
	if name == "" || len(name) > 4*255 { // an escaped octet takes four characters
		return errors.New("not a domain name: empty or too long")
	}
	if _, ok := dns.IsDomainName(name); !ok {
		return errors.New("not a domain name: a label is empty or over 63 octets, or the whole over 255")
	}
	return nil
}

// ask goes over the servers until one gives a usable message: an answer, or a
// word that there is none. It begins with the one that the last failure left in
// front: a refresh asks several questions one after the other, and waiting in
// each for the same dead server would cost more time than a refresh has.
func (r *dnsResolver) ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, string, error) {
	n := uint32(len(r.servers))
	first := r.first.Load()
	failures := make([]error, n)
	for range r.attempts {
		for k := range n {
			i := (first + k) % n
			server := r.servers[i]
			m, err := r.try(ctx, server, name, qtype)
			if err == nil {
				return m, server, nil
			}
			if ctx.Err() != nil {
				return nil, "", fmt.Errorf("given up while asking %s: %w", server, context.Cause(ctx))
			}
			failures[i] = fmt.Errorf("%s: %w", server, err)
			r.first.CompareAndSwap(i, (i+1)%n)
		}
	}
	return nil, "", fmt.Errorf("no DNS server answered (each asked %d times); check the resolver addresses, and that UDP and TCP reach them: %w",
		r.attempts, joinLine(failures))
}

// try is one attempt at one server: UDP, then TCP if the answer did not fit.
func (r *dnsResolver) try(ctx context.Context, server, name string, qtype uint16) (*dns.Msg, error) {
	q := question(name, qtype, true)
	m, err := exchange(ctx, "udp", server, q, r.timeout)
	if err == nil && (m.Rcode == dns.RcodeFormatError || m.Rcode == dns.RcodeNotImplemented) && m.IsEdns0() == nil {
		// A server from before EDNS0 (RFC 6891, section 6.2.2).
		q = question(name, qtype, false)
		m, err = exchange(ctx, "udp", server, q, r.timeout)
	}
	if err == nil && m.Truncated {
		m, err = exchange(ctx, "tcp", server, q, r.timeout)
	}
	switch {
	case err != nil:
		return nil, err
	case m.Truncated:
		return nil, errors.New("its answer is truncated over TCP too")
	case m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError:
		return nil, &ResponseError{Code: rcodeText(m.Rcode)}
	case referral(m):
		return nil, errors.New("it only names other servers; it does not serve the zone and is not recursive")
	}
	return m, nil
}

func question(name string, qtype uint16, edns bool) *dns.Msg {
	q := new(dns.Msg)
	q.SetQuestion(name, qtype) // a random ID and "recursion desired"
	if edns {
		q.SetEdns0(ednsSize, false)
	}
	return q
}

func rcodeText(rcode int) string {
	if s, ok := dns.RcodeToString[rcode]; ok {
		return s
	}
	return fmt.Sprintf("code %d", rcode)
}

// joined prints several errors in one line and unwraps to all of them.
type joined []error

func joinLine(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return joined(errs)
}

func (j joined) Error() string {
	parts := make([]string, len(j))
	for i, e := range j {
		parts[i] = e.Error()
	}
	return strings.Join(parts, "; ")
}

func (j joined) Unwrap() []error { return j }
