package server

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/dnszone"
)

// dnsFront is the embedded DNS server, whose zone has this server as its only member
// under every tenant's key ID.
type dnsFront struct {
	zone   *dnszone.Zone
	server *dnszone.Server
}

// listenDNS binds the DNS address and makes the zone. The UDP addresses are bound
// already, so that their ports are known.
func (s *Server) listenDNS() error {
	if !s.settings.dns.IsValid() {
		return nil
	}
	zone, err := dnszone.New(dnszone.Config{
		Zone:            s.settings.Zone,
		KeyIDs:          s.registry.keyIDs(),
		TTL:             s.settings.TTL,
		Serial:          uint32(s.id.Start().Unix()),
		NameServerAddrs: s.nameServer(),
	})
	if err != nil { // all but the zone has been checked
		return bad("Zone", "%s", strings.TrimPrefix(err.Error(), "dnszone: "))
	}
	if err := zone.SetMembers([]dnszone.Member{{ID: s.id, Addrs: s.advertised()}}); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	server, err := dnszone.Listen(s.settings.dns.String(), zone, dnszone.Options{})
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.dns = &dnsFront{zone: zone, server: server}
	return nil
}

// advertised returns the addresses that clients are told.
func (s *Server) advertised() []netip.AddrPort {
	bound := s.Addrs()
	if len(s.settings.advertise) == 0 {
		return bound
	}
	addrs := make([]netip.AddrPort, len(s.settings.advertise))
	for i, a := range s.settings.advertise {
		if a.Port() == 0 {
			a = netip.AddrPortFrom(a.Addr(), bound[0].Port())
		}
		addrs[i] = a
	}
	return addrs
}

// nameServer returns the addresses of the name server that the zone names: itself, at
// the address it listens on, or on a wildcard where clients reach this machine.
func (s *Server) nameServer() []netip.Addr {
	if ip := s.settings.dns.Addr(); !ip.IsUnspecified() {
		if ip.Zone() != "" {
			return nil // DNS cannot tell it
		}
		return []netip.Addr{ip}
	}
	var ips []netip.Addr
	for _, a := range s.advertised() {
		if !slices.Contains(ips, a.Addr()) {
			ips = append(ips, a.Addr())
		}
	}
	return ips
}

func (d *dnsFront) addr() netip.AddrPort { return d.server.Addr() }

func (d *dnsFront) setKeyIDs(ids []uint64) { d.zone.SetKeyIDs(ids) }

// leave takes the server out of its zone; the zone goes on being served.
func (d *dnsFront) leave() {
	// An empty list is always allowed.
	_ = d.zone.SetMembers(nil)
}

func (d *dnsFront) serve(ctx context.Context) error {
	if err := d.server.Serve(ctx); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func (d *dnsFront) close() { _ = d.server.Close() }
