package main

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/dnszone"
)

type dnsCmd struct {
	Listen       string        `default:"127.0.0.1:1053" placeholder:"ADDR" help:"Address for UDP and TCP (${default})."`
	Zone         string        `required:"" placeholder:"ZONE" help:"The zone to serve, such as rl.example.com."`
	Members      string        `required:"" type:"path" placeholder:"FILE" help:"YAML file that lists the servers; followed while it changes."`
	TTL          time.Duration `name:"ttl" default:"5s" placeholder:"TIME" help:"How long answers may be kept, whole seconds (${default})."`
	NS           string        `name:"ns" placeholder:"NAME" help:"Host that the NS record names (ns in the zone)."`
	NSAddr       []netip.Addr  `name:"ns-addr" placeholder:"IP" help:"Address of that host, when it is in the zone; may be repeated (the address listened on)."`
	ResponseRate int           `default:"200" placeholder:"N" help:"Answers a second over UDP to one source prefix, 0 for no limit (${default}); loopback is not limited."`
	LogFormat    string        `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Log in text (the default) or json, to standard error."`
	supervised
}

// Help is the command's long help.
func (*dnsCmd) Help() string {
	return `A small authoritative DNS server for one zone of your own: SRV records that list the r-servers, with their addresses. Delegate the zone to it, point a resolver at it, or name it in WEIR_RESOLVER.

The members file is read again when it changes and on SIGHUP; a broken one changes nothing and is logged with its line and column.

    members:
      - id: 512450938123
        addr: 192.0.2.1:29292
      - id: 512450938999
        addr: [192.0.2.2:29292, "[2001:db8::2]:29292"]
    keys: [7, 8]        # key IDs that have servers here; without it, every one

Examples:

    weir dns --zone rl.example.com --members members.yaml --listen 127.0.0.1:1053
    weir dns --zone rl.example.com --members members.yaml --listen 192.0.2.53:53 --ttl 10s`
}

// Run serves the zone until the context ends.
func (c *dnsCmd) Run(ctx context.Context, std *stdio) error {
	hangups := catchHangups()
	defer hangups.stop()
	if c.TTL <= 0 {
		return usage(errors.New("--ttl must be more than 0; leave it out for the default"))
	}
	if c.ResponseRate < 0 {
		return usage(errors.New("--response-rate must not be below 0, which is no limit"))
	}
	log := newLog(std, c.LogFormat)
	zone, err := dnszone.New(dnszone.Config{
		Zone: c.Zone, TTL: c.TTL, NameServer: c.NS, NameServerAddrs: c.nsAddrs(),
		Serial: uint32(time.Now().Unix()), // rises over restarts too
	})
	if err != nil {
		return usage(err)
	}
	members, err := dnszone.Follow(zone, c.Members, log)
	if err != nil {
		return err
	}
	defer func() { _ = members.Close() }()
	rate := c.ResponseRate
	if rate == 0 {
		rate = -1 // the library's word for no limit
	}
	server, err := dnszone.Listen(c.Listen, zone, dnszone.Options{ResponseRate: rate})
	if err != nil {
		return err
	}
	ctx, cancel := c.supervise(ctx, std)
	defer cancel()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	tasks.Go(func() { members.Run(ctx) })
	hangups.follow(ctx, &tasks, members.Reload)
	log.Info("serving", "dns", server.Addr().String(), "zone", zone.Name(), "members", len(zone.Members()), "serial", zone.Serial())
	return server.Serve(ctx)
}

// nsAddrs are the addresses of the name server: as told, or the one listened on
// where that is one and the name server is in the zone.
func (c *dnsCmd) nsAddrs() []netip.Addr {
	if len(c.NSAddr) > 0 || c.NS != "" {
		return c.NSAddr
	}
	listen, err := netip.ParseAddrPort(c.Listen)
	if err != nil || listen.Addr().IsUnspecified() || listen.Addr().Zone() != "" {
		return nil
	}
	return []netip.Addr{listen.Addr()}
}
