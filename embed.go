package weir

import (
	"fmt"

	"github.com/weirhq/weir/core"
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
// the same: [ErrNoServers], [ErrTooManyInFlight], [ErrClosed] or a [*ConfigError].
// Any other is wrapped, and nil stays nil.
func CoreError(err error) error {
	if err == nil {
		return nil
	}
	return translate(err)
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
