package weir

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/discovery"
	"github.com/weirhq/weir/wire"
)

// Core checks the part of the configuration that is this package's and returns
// the core's, for a program that drives a [core.Core] in an event loop of its own
// (docs/session.md). Entropy is left to set. The servers are those of
// Config.Servers, for [core.Core.SetMembership]; with a Zone, a Domain or Hosted
// there are none, and the core asks for lookups. Resolver, SocketBuffer and
// Logger play no part. The error is a [*ConfigError]; core.New finds the rest,
// see [CoreError].
func (cfg *Config) Core() (core.Config, []core.Server, error) { return cfg.core() }

// Encode returns the request as [core.Core.Submit] takes it. The layout is that
// of the core; 0 means 2. The error is a [*ConfigError].
func (r Request) Encode(l wire.Layout) (core.Request, error) {
	guards, resources, err := appendBlocks(nil, nil, r.Resources, r.Guards, l)
	return core.Request{Guards: guards, Resources: resources, Label: r.Label}, err
}

// Decision returns what a core's completion of the request says, as
// [Client.Acquire] does: a decision, or the error of there being none, which is
// a [*TimeoutError] or matches [ErrIO]. Nothing is kept of c. A completion of a
// request that asked for something else is an error too.
func (r Request) Decision(c *core.Completion) (Decision, error) {
	var d Decision
	d.ask(r.Resources, r.Guards)
	if err := d.conclude(c); err != nil {
		return Decision{}, err
	}
	return d, nil
}

// EncodeReport returns observations as [core.Core.Report] takes them. The layout
// is that of the core; 0 means 2. The error is a [*ConfigError].
func EncodeReport(l wire.Layout, obs ...Observation) ([]wire.Observation, error) {
	return appendObservations(nil, obs, l)
}

// CoreError returns an error of package core as the one of this package that says
// the same: [ErrNoServers], [ErrTooManyInFlight], [ErrFailFast], [ErrClosed] or a
// [*ConfigError]. Any other is wrapped, and nil stays nil. ErrFailFast comes bare:
// [core.Core.FailFast] has the rest.
func CoreError(err error) error {
	if err == nil {
		return nil
	}
	return translate(err)
}

// A LookupAnswer is what a resolver says to a [core.Lookup].
type LookupAnswer struct {
	Lookup core.Lookup
	SRV    core.SRVAnswer  // of a [core.LookupSRV]
	Addrs  core.AddrAnswer // of a [core.LookupAddrs]
	// Partial is why one family of the addresses is not known, nil for both are.
	Partial *discovery.PartialError
}

// LookUp asks r what a core wants to know, and blocks for it. An error of r is
// part of the answer.
func LookUp(ctx context.Context, r discovery.Resolver, l core.Lookup) LookupAnswer {
	a := LookupAnswer{Lookup: l}
	if l.Kind == core.LookupSRV {
		var records []discovery.SRV
		records, a.SRV.TTL, a.SRV.Err = r.LookupSRV(ctx, l.Name)
		for _, srv := range records {
			a.SRV.Records = append(a.SRV.Records, core.SRV{Target: srv.Target, Port: srv.Port})
		}
		return a
	}
	a.Addrs.Addrs, a.Addrs.TTL, a.Addrs.Err = r.LookupAddrs(ctx, l.Name)
	if len(a.Addrs.Addrs) > 0 && errors.As(a.Addrs.Err, &a.Partial) {
		a.Addrs.Err = nil
		a.Addrs.FailedIPv4 = a.Partial.Network != "ip6"
		a.Addrs.FailedIPv6 = a.Partial.Network != "ip4"
	}
	return a
}

// HandTo hands the answer to the core whose lookup it was.
func (a *LookupAnswer) HandTo(c *core.Core, now core.Time) {
	if a.Lookup.Kind == core.LookupSRV {
		c.HandleSRV(now, a.Lookup.ID, a.SRV)
		return
	}
	c.HandleAddrs(now, a.Lookup.ID, a.Addrs)
}

// appendBlocks appends what a request asks, but for its label.
func appendBlocks(guards []wire.Guard, resources []wire.Resource, r []Resource, g []Guard, l wire.Layout) ([]wire.Guard, []wire.Resource, error) {
	for i := range g {
		w, err := g[i].encode(i, l)
		if err != nil {
			return nil, nil, err
		}
		guards = append(guards, w)
	}
	for i := range r {
		w, err := r[i].encode(i)
		if err != nil {
			return nil, nil, err
		}
		resources = append(resources, w)
	}
	return guards, resources, nil
}

// appendObservations appends what a report says.
func appendObservations(encoded []wire.Observation, obs []Observation, l wire.Layout) ([]wire.Observation, error) {
	for i := range obs {
		w, err := obs[i].encode(i, l)
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, w)
	}
	return encoded, nil
}

// conclude fills in how the request that was asked ended, or says why it is not
// decided.
func (d *Decision) conclude(c *core.Completion) error {
	switch c.Outcome {
	case core.Granted, core.Rejected:
		if len(c.Resources) != d.resources || len(c.Guards) != d.guards {
			return fmt.Errorf("weir: a completion of %d resources and %d guards is not one of this request, of %d and %d",
				len(c.Resources), len(c.Guards), d.resources, d.guards)
		}
		d.answer(c)
		return nil
	case core.TimedOut:
		return &TimeoutError{Elapsed: c.Elapsed, Seen: c.Seen}
	case core.SendFailed:
		return fmt.Errorf("%w: %w", ErrIO, c.Err)
	}
	return fmt.Errorf("weir: a request ended as %v", c.Outcome)
}
