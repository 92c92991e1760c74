package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// discoverer paces and follows the refreshes of a membership: SRV first, then
// the addresses of each target. One refresh runs at a time.
type discoverer struct {
	service string // empty: no discovery
	refresh RefreshConfig
	limits  Limits
	random  *rand.Rand
	lastID  LookupID
	told    Discovered // with the last EventMembershipChanged

	running  bool
	next     time.Duration // when idle: the next refresh
	earliest time.Duration // a forced one not before that
	failures int           // refreshes that failed in a row

	// The refresh that runs.
	timeout time.Duration
	srv     LookupID // until it is answered
	targets []target
	hosts   []hostLookup
	open    int           // hosts without an answer
	ttl     time.Duration // the smallest so far, 0 = none
	skipped Skipped
	failed  error // the first failure of a target

	// What is found by a refresh that began with no servers is not kept back
	// until all is there.
	eager bool
	grace time.Duration // once SRV is answered: from then on
	found bool          // addresses that are in no membership yet
}

// hostLookup is the lookup of one target's addresses.
type hostLookup struct {
	id     LookupID // until it is answered
	name   string
	addrs  []netip.Addr
	failed families // of which it is not known whether there are more
}

const servicePrefix = "_ratelimitly._udp."

var (
	errNoAnswer    = errors.New("no answer in time")
	errNoAddresses = errors.New("there are none")
)

func newDiscoverer(cfg *Config, random *rand.Rand) discoverer {
	d := discoverer{refresh: cfg.Refresh, limits: cfg.Limits, random: random, next: -maxMono}
	if cfg.Domain != "" {
		d.service = servicePrefix + cfg.Domain
	}
	return d
}

// HandleSRV takes the answer to the [EventLookup] with this ID. Nothing of a is
// kept. An answer that is no longer wanted is ignored.
func (c *Core) HandleSRV(now Time, id LookupID, a SRVAnswer) {
	t := c.advance(now)
	d := &c.discovery
	if !d.running || id == 0 || id != d.srv {
		return
	}
	d.srv = 0
	if a.Err != nil {
		c.endRefresh(t, fmt.Errorf("core: discovery: SRV records of %s: %w", d.service, a.Err))
		return
	}
	d.targets, d.skipped = conforming(a.Records, c.wall, &d.limits)
	if len(d.targets) == 0 {
		c.endRefresh(t, d.noTargets(len(a.Records)))
		return
	}
	d.lower(a.TTL)
	d.grace = t + d.refresh.Grace
	for _, target := range d.targets {
		if d.host(target.host) != nil {
			continue
		}
		id := c.lookUp(LookupAddrs, target.host)
		d.hosts = append(d.hosts, hostLookup{id: id, name: target.host})
		d.open++
	}
}

// HandleAddrs takes the answer to the [EventLookup] with this ID. Nothing of a
// is kept. An answer that is no longer wanted is ignored.
func (c *Core) HandleAddrs(now Time, id LookupID, a AddrAnswer) {
	t := c.advance(now)
	d := &c.discovery
	if !d.running || id == 0 {
		return
	}
	for i := range d.hosts {
		h := &d.hosts[i]
		if h.id != id {
			continue
		}
		addrs, refused := usable(a.Addrs)
		d.skipped.Addresses += refused
		switch {
		case a.Err != nil:
			d.fail(h, a.Err)
		case len(a.Addrs) == 0:
			d.fail(h, errNoAddresses)
		case len(addrs) == 0:
			d.fail(h, fmt.Errorf("none of %d addresses can be sent to", len(a.Addrs)))
		default:
			h.id, h.addrs, h.failed = 0, addrs, families{a.FailedIPv4, a.FailedIPv6}
			d.open--
			d.lower(a.TTL)
			d.found = true
		}
		if d.open == 0 {
			c.endRefresh(t, nil)
			return
		}
		c.installEarly(t)
		return
	}
}

// noTargets says why none of the SRV records names a server.
func (d *discoverer) noTargets(records int) error {
	switch {
	case records == 0:
		return fmt.Errorf("core: discovery: %s has no SRV records", d.service)
	case d.skipped.Future > 0:
		return fmt.Errorf("core: discovery: all servers of %s start in the future; check this machine's clock", d.service)
	}
	return fmt.Errorf("core: discovery: none of the %d SRV records of %s has a port and a target that begins with s-<server id>", records, d.service)
}

// tickDiscovery runs what is due at t.
func (c *Core) tickDiscovery(t time.Duration) {
	d := &c.discovery
	at, ok := d.deadline(t)
	if !ok || at > t {
		return
	}
	if !d.running {
		c.startRefresh(t)
		return
	}
	if t < d.timeout {
		c.installEarly(t)
		return
	}
	if d.srv != 0 {
		c.cancelLookups()
		c.endRefresh(t, fmt.Errorf("core: discovery: SRV records of %s: %w", d.service, errNoAnswer))
		return
	}
	c.cancelLookups()
	for i := range d.hosts {
		if d.hosts[i].id != 0 {
			d.fail(&d.hosts[i], errNoAnswer)
		}
	}
	c.endRefresh(t, nil)
}

// installEarly makes a membership of the servers whose addresses are there,
// while other lookups go on: where there were none at all, some are worth more
// than all of them later. Where there were some, they serve until the refresh
// has ended.
func (c *Core) installEarly(t time.Duration) {
	d := &c.discovery
	if !d.eager || !d.found || t < d.grace {
		return
	}
	d.found = false
	servers, excess := d.assembled(c.members)
	skipped := d.skipped
	skipped.Excess = excess
	c.install(newSnapshot(servers), skipped)
}

// endRefresh makes a membership of what a refresh found, or keeps the last one
// where it failed, and sets the next.
func (c *Core) endRefresh(t time.Duration, err error) {
	d := &c.discovery
	d.running = false
	var servers []Server
	if err == nil {
		servers, d.skipped.Excess = d.assembled(c.members)
		err = d.failed
	}
	c.stats.Skipped.add(d.skipped)
	if len(servers) > 0 {
		c.install(newSnapshot(servers), d.skipped)
	}
	if err == nil {
		d.failures = 0
		d.next = t + d.interval()
		return
	}
	c.stats.RefreshFailures++
	c.events.push(pendingEvent{kind: EventDiscoveryFailed, err: err, discovered: Discovered{
		Servers: len(c.members.servers), Endpoints: len(c.members.endpoints), Skipped: d.skipped,
	}})
	d.failures++
	wait := d.backoff()
	if len(servers) > 0 {
		wait = min(wait, d.interval())
	}
	d.next = t + wait
}

// assembled returns the servers that the refresh found, and how much in all was
// over the limits.
func (d *discoverer) assembled(last *snapshot) ([]Server, uint64) {
	servers, excess := assemble(d.targets, d.hosts, last, &d.limits)
	return servers, d.skipped.Excess + excess
}

// stopDiscovery ends discovery for good.
func (c *Core) stopDiscovery() {
	if c.discovery.running {
		c.cancelLookups()
	}
	c.discovery.running = false
	c.discovery.service = ""
}

// cancelLookups tells that answers are no longer wanted.
func (c *Core) cancelLookups() {
	d := &c.discovery
	if d.srv != 0 {
		c.events.push(pendingEvent{kind: EventCancelLookup, lookup: Lookup{d.srv, LookupSRV, d.service}})
	}
	for _, h := range d.hosts {
		if h.id != 0 {
			c.events.push(pendingEvent{kind: EventCancelLookup, lookup: Lookup{h.id, LookupAddrs, h.name}})
		}
	}
}

func (c *Core) lookUp(kind LookupKind, name string) LookupID {
	c.discovery.lastID++
	id := c.discovery.lastID
	c.events.push(pendingEvent{kind: EventLookup, lookup: Lookup{id, kind, name}})
	return id
}

// host returns the lookup of a name, or nil.
func (d *discoverer) host(name string) *hostLookup {
	for i := range d.hosts {
		if d.hosts[i].name == name {
			return &d.hosts[i]
		}
	}
	return nil
}

// fail ends the lookup of a target's addresses without any.
func (d *discoverer) fail(h *hostLookup, err error) {
	h.id, h.addrs, h.failed = 0, nil, families{true, true}
	d.open--
	d.skipped.Failed++
	if d.failed == nil {
		d.failed = fmt.Errorf("core: discovery: addresses of %s: %w", h.name, err)
	}
}

// lower takes a TTL into account.
func (d *discoverer) lower(ttl time.Duration) {
	if ttl > 0 && (d.ttl == 0 || ttl < d.ttl) {
		d.ttl = ttl
	}
}
