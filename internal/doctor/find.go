package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/ident"
)

// find looks the servers up, or takes those that were given.
func (x *examination) find(ctx context.Context) error {
	c := &x.cfg.Client
	if name := domain(c); name != "" {
		x.report.DNS = &DNS{Name: discovery.ServiceName(name), Asked: "a resolver", Records: []Record{}, Hosts: []Host{}}
		if s, ok := c.Resolver.(fmt.Stringer); ok {
			x.report.DNS.Asked = s.String()
		}
		return x.lookUp(ctx, x.report.DNS)
	}
	servers := make([]core.Server, len(c.Servers))
	for i, s := range c.Servers {
		servers[i] = core.Server{ID: s.ID, Endpoints: s.Addrs}
	}
	m, err := x.membership("")
	if err == nil {
		err = m.SetMembership(x.coreNow(), servers)
	}
	var field *core.FieldError
	switch {
	case errors.As(err, &field):
		return &weir.ConfigError{Field: field.Field, Reason: field.Reason}
	case err != nil:
		return fmt.Errorf("doctor: %w", err)
	}
	x.servers(m.Membership())
	return nil
}

// lookUp asks DNS and takes the answers as a client does.
func (x *examination) lookUp(ctx context.Context, d *DNS) error {
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Lookup)
	defer cancel()
	begin := x.cfg.Now()
	x.progress.now("asking DNS (%s) for %s", d.Asked, d.Name)
	records, ttl, err := x.memo.LookupSRV(ctx, d.Name)
	d.TTL = Millis(ttl)
	if err != nil {
		d.Error, d.Failure = lookupError(err)
	} else {
		x.hosts(ctx, d, records)
	}
	d.Took = Millis(x.cfg.Now().Sub(begin))
	if err := x.take(d, records); err != nil {
		return err
	}
	if len(x.report.Servers) == 0 && d.Failure != Silent && d.Failure != Unasked {
		x.elsewhere(ctx, d)
	}
	return nil
}

// hosts looks up the addresses of the targets that name servers, all at once.
func (x *examination) hosts(ctx context.Context, d *DNS, records []discovery.SRV) {
	known := make(map[string]bool)
	for _, r := range records {
		host := strings.TrimSuffix(r.Target, ".")
		if _, ok := ident.ParseTarget(r.Target); ok && r.Port != 0 && !known[host] && len(d.Hosts) < discovery.MaxTargets {
			known[host] = true
			d.Hosts = append(d.Hosts, Host{Name: host})
		}
	}
	var all sync.WaitGroup
	for i := range d.Hosts {
		h := &d.Hosts[i]
		all.Go(func() {
			found, _, err := x.memo.LookupAddrs(ctx, h.Name)
			var partial *discovery.PartialError
			switch {
			case len(found) > 0 && errors.As(err, &partial):
				h.Error, h.Failure = lookupError(partial.Err)
				h.Partial = map[string]string{"ip4": "IPv4", "ip6": "IPv6"}[partial.Network]
			case err != nil:
				h.Error, h.Failure = lookupError(err)
			}
			for _, a := range found {
				if reachable(a) {
					h.Addrs = append(h.Addrs, a)
				} else {
					h.Refused = append(h.Refused, a)
				}
			}
		})
	}
	all.Wait()
}

// reachable reports whether a client sends to an address.
func reachable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// lookupError says what an error of a lookup means, in words that need not name
// what was looked up or what to do.
func lookupError(err error) (string, Failure) {
	var code *discovery.ResponseError
	switch {
	case outOfFiles(err):
		return plainError(err), Unasked
	case errors.Is(err, discovery.ErrNoName):
		return "there is no such name (NXDOMAIN)", NoName
	case errors.Is(err, discovery.ErrNotFound):
		return "the name has no such records", NoRecord
	case errors.As(err, &code):
		return code.Error(), Refused
	}
	return plainError(err), Silent
}

// elsewhere looks for servers at other readings of the place that was given.
func (x *examination) elsewhere(ctx context.Context, d *DNS) {
	for _, r := range readings(&x.cfg.Client) {
		name := discovery.ServiceName(r.domain)
		records, _, err := x.memo.LookupSRV(ctx, name)
		servers := make(map[ident.ServerID]bool)
		for _, rr := range records {
			if id, ok := ident.ParseTarget(rr.Target); ok && err == nil {
				servers[id] = true
			}
		}
		if len(servers) > 0 {
			d.Elsewhere = append(d.Elsewhere, Elsewhere{Flag: r.flag, Name: name, Servers: len(servers)})
		}
	}
}

func (x *examination) coreNow() core.Time {
	now := x.cfg.Now()
	return core.Time{Mono: time.Second, Wall: now.UnixMilli()}
}
