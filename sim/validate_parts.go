package sim

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/limiter"
)

func (c *checker) checkBuckets() {
	taken := map[string]bool{}
	buckets := 0
	for i := range c.s.Buckets {
		b, at := &c.s.Buckets[i], fmt.Sprintf("Buckets[%d].", i)
		c.name(at+"Name", b.Name, taken)
		c.milliseconds(at+"Window", b.Window, 0)
		c.that(b.Window.Milliseconds() <= int64(c.s.quotas().RateWindow), at+"Window", "%v is over the quota of %d ms", b.Window, c.s.quotas().RateWindow)
		c.number(at+"Count", b.Count, 0, maxBuckets)
		if c.wrong != nil {
			return
		}
		buckets += b.count()
		c.that(buckets <= maxBuckets, at+"Count", "with those before there are more than %d buckets in all", maxBuckets)
		c.number(at+"Zipf", int(min(b.Zipf, 1<<30)), 0, 1000)
	}
}

func (c *checker) checkTrackers() {
	taken := map[string]bool{}
	for i := range c.s.Trackers {
		t, at := &c.s.Trackers[i], fmt.Sprintf("Trackers[%d].", i)
		c.name(at+"Name", t.Name, taken)
		c.milliseconds(at+"TTL", t.TTL, time.Millisecond)
		c.that(t.MaxSamples > 0, at+"MaxSamples", "a tracker keeps at least 1")
	}
}

func (c *checker) checkServers() {
	c.that(len(c.s.Servers) > 0 && len(c.s.Servers) <= maxServers, "Servers", "there are %d, not 1 to %d", len(c.s.Servers), maxServers)
	taken := map[string]bool{}
	for i := range c.s.Servers {
		s, at := &c.s.Servers[i], fmt.Sprintf("Servers[%d].", i)
		c.name(at+"Name", s.Name, taken)
		c.between(at+"Age", s.Age, time.Second, maxAge)
		c.that(s.Age%time.Second == 0, at+"Age", "%v is not whole seconds", s.Age)
		c.number(at+"Workers", s.Workers, 0, 256)
		c.number(at+"Queue", s.Queue, 0, maxCount)
		c.dist(at+"Service", s.Service)
		c.between(at+"Skew", s.Skew, -maxSkew, maxSkew)
		c.milliseconds(at+"Probe", s.Probe, 0)
		c.milliseconds(at+"ClockSkew", s.ClockSkew, 0)
		if c.wrong != nil {
			return
		}
		if _, err := limiter.New(c.s.engineConfig(s)); err != nil {
			c.that(false, fmt.Sprintf("Servers[%d]", i), "%v", err)
		}
	}
}

func (c *checker) checkServices() {
	taken := map[string]bool{}
	for i := range c.s.Services {
		s, at := &c.s.Services[i], fmt.Sprintf("Services[%d].", i)
		c.name(at+"Name", s.Name, taken)
		c.dist(at+"Time", s.Time)
		c.that(s.Tracker == "" || c.s.tracker(s.Tracker) >= 0, at+"Tracker", "there is no tracker %q", s.Tracker)
		c.number(at+"Queue", s.Queue, 0, maxCount)
	}
}

func (c *checker) checkLinks() {
	for i := range c.s.Links {
		l, at := &c.s.Links[i], fmt.Sprintf("Links[%d].", i)
		c.ends(at, l.From, l.To)
		c.dist(at+"Delay", l.Delay)
		c.dist(at+"Late", l.Late)
		c.chance(at+"Loss", l.Loss)
		c.chance(at+"Duplicate", l.Duplicate)
		c.chance(at+"Reorder", l.Reorder)
		c.chance(at+"Burst.Enter", l.Burst.Enter)
		c.chance(at+"Burst.Leave", l.Burst.Leave)
		c.chance(at+"Burst.Loss", l.Burst.Loss)
	}
}

// ends checks that a link has clients at one end and servers at the other.
func (c *checker) ends(at, from, to string) {
	f, t := c.s.party(from), c.s.party(to)
	c.that(f.ok, at+"From", "%q is no client, group of clients, server or *", from)
	c.that(t.ok, at+"To", "%q is no client, group of clients, server or *", to)
	c.that(f.all || t.all || f.server != t.server, at+"To", "%q and %q are not clients and a server", from, to)
}

func (c *checker) checkDNS() {
	d := &c.s.DNS
	c.between("DNS.TTL", d.TTL, 0, maxLength)
	c.dist("DNS.Delay", d.Delay)
	c.dist("DNS.Propagation", d.Propagation)
	for i, name := range d.Members {
		c.that(c.s.server(name) >= 0, fmt.Sprintf("DNS.Members[%d]", i), "there is no server %q", name)
	}
}

func (c *checker) checkFaults() {
	for i := range c.s.Faults {
		f, at := &c.s.Faults[i], fmt.Sprintf("Faults[%d].", i)
		c.between(at+"At", f.At, 0, maxLength)
		c.between(at+"For", f.For, 0, maxLength)
		c.dist(at+"Dist", f.Dist)
		c.checkFault(f, at)
	}
}

func (c *checker) checkFault(f *Fault, at string) {
	switch f.Kind {
	case FaultPartition, FaultDelay:
		c.ends(at, f.From, f.To)
	case FaultLoss:
		c.ends(at, f.From, f.To)
		c.chance(at+"Chance", f.Chance)
	case FaultPause, FaultSlow, FaultKill, FaultForget:
		c.that(c.s.server(f.Server) >= 0, at+"Server", "there is no server %q", f.Server)
	case FaultClock:
		c.between(at+"Step", f.Step, -maxSkew, maxSkew)
		if f.Server != "" {
			c.that(c.s.server(f.Server) >= 0, at+"Server", "there is no server %q", f.Server)
			c.that(f.From == "", at+"From", "a step is of a server or of clients; leave one out")
			return
		}
		p := c.s.party(f.From)
		c.that(p.ok && !p.server, at+"From", "%q is no client or group of clients", f.From)
	case FaultMembers:
		c.that(len(f.Members) > 0, at+"Members", "there are none; for no servers at all use the kind empty")
		for i, name := range f.Members {
			c.that(c.s.server(name) >= 0, fmt.Sprintf("%sMembers[%d]", at, i), "there is no server %q", name)
		}
	case FaultWork:
		c.that(c.s.service(f.Service) >= 0, at+"Service", "there is no service %q", f.Service)
	case FaultEmpty, FaultResolver, FaultStranger:
	default:
		c.that(false, at+"Kind", "%v is none", f.Kind)
	}
}
