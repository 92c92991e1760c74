package core

import "time"

// Refresh wants the servers discovered anew, because none answers or something
// else tells that they have changed. It happens at once, unless a refresh is
// running, which then serves, or the last began less than RefreshConfig.Forced
// and some jitter ago, which is then waited for. A core without a domain has
// nothing to discover.
func (c *Core) Refresh(now Time) {
	c.forceDiscovery(c.advance(now))
}

// forceDiscovery is Refresh.
func (c *Core) forceDiscovery(t time.Duration) {
	d := &c.discovery
	if c.closed || d.service == "" || d.running {
		return
	}
	if t >= d.earliest || d.next == -maxMono {
		c.startRefresh(t)
		return
	}
	d.next = min(d.next, d.earliest)
}

func (c *Core) startRefresh(t time.Duration) {
	d := &c.discovery
	c.stats.Refreshes++
	d.running = true
	d.timeout = t + d.refresh.Timeout
	d.earliest = t + d.jittered(d.refresh.Forced)
	d.targets, d.hosts, d.open = nil, d.hosts[:0], 0
	d.ttl, d.skipped, d.failed = 0, Skipped{}, nil
	d.eager, d.found = len(c.members.servers) == 0, false
	d.srv = c.lookUp(LookupSRV, d.service)
}

// deadline returns when the timer has something to do for discovery.
func (d *discoverer) deadline(now time.Duration) (time.Duration, bool) {
	switch {
	case d.service == "":
		return 0, false
	case d.running && d.eager && d.found:
		return min(d.grace, d.timeout), true
	case d.running:
		return d.timeout, true
	case d.next == -maxMono: // never ran
		return now, true
	}
	return d.next, true
}

// interval returns the time from a good refresh to the next.
func (d *discoverer) interval() time.Duration {
	if d.ttl == 0 {
		return d.refresh.Interval
	}
	return max(min(d.ttl, d.refresh.Interval), d.refresh.Min)
}

// backoff returns the time from the latest of some failures in a row to the next
// try.
func (d *discoverer) backoff() time.Duration {
	wait := d.refresh.Backoff
	for i := 1; i < d.failures && wait < d.refresh.BackoffMax; i++ {
		wait *= 2
	}
	return d.jittered(min(wait, d.refresh.BackoffMax))
}

// jittered adds up to half as much again.
func (d *discoverer) jittered(wait time.Duration) time.Duration {
	return wait + time.Duration(d.random.Int64N(int64(wait/2)+1))
}
