package weir

import (
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
)

// Stats is what a client counted since it was made.
type Stats struct {
	core.Stats // requests, datagrams, discovery

	Lookups          uint64 // DNS lookups begun
	Rebinds          uint64 // sockets replaced on a server's advice
	SteeringFailures uint64 // advice that could not be followed
	ReadErrors       uint64 // passing errors of sockets
	LostReports      uint64 // reports of Do that failed, and those left to another's send when there was nobody to tell any more
	Sockets          int    // gauge: open sockets
}

// counts are those of Stats that are the client's own.
type counts struct {
	lookups, rebinds, steeringFailures, lostReports uint64
}

// Stats returns what the client counted.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Stats:            c.core.Stats(),
		Lookups:          c.counts.lookups,
		Rebinds:          c.counts.rebinds,
		SteeringFailures: c.counts.steeringFailures,
		ReadErrors:       c.readErrors.Load(),
		LostReports:      c.counts.lostReports,
		Sockets:          len(c.sockets),
	}
}

// Servers returns the servers that a request would be sent to now, oldest first,
// in memory of the caller's own.
func (c *Client) Servers() []discovery.Server {
	c.mu.Lock()
	members := c.core.Membership()
	c.mu.Unlock()
	servers := make([]discovery.Server, len(members))
	for i, m := range members {
		servers[i] = discovery.Server{ID: m.ID, Addrs: m.Endpoints}
	}
	return servers
}
