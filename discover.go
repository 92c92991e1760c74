package weir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weirhq/weir/core"
)

// discoveryState is what callers wait for while no server is known. It is
// guarded by the client's lock.
type discoveryState struct {
	known     chan struct{} // closed when servers are known for the first time
	everKnown bool
	tried     chan struct{} // closed when the first attempt has ended
	everTried bool
	attempt   chan struct{} // closed when the attempt that is under way ends; nil if none is
	err       error         // of the last attempt
}

func newDiscoveryState() discoveryState {
	return discoveryState{known: make(chan struct{}), tried: make(chan struct{})}
}

var errUnderWay = errors.New("discovery is still under way")

// noServers is [ErrNoServers] with the reason.
func noServers(cause error) error {
	if cause == nil {
		cause = errUnderWay
	}
	return fmt.Errorf("%w: %w", ErrNoServers, cause)
}

func (d *discoveryState) began() { d.attempt = make(chan struct{}) }

func (d *discoveryState) ended() {
	if d.attempt != nil {
		close(d.attempt)
		d.attempt = nil
	}
	if !d.everTried {
		d.everTried = true
		close(d.tried)
	}
}

func (d *discoveryState) succeeded() {
	d.err = nil
	d.ended()
	if !d.everKnown {
		d.everKnown = true
		close(d.known)
	}
}

func (d *discoveryState) failed(err error) {
	d.err = err
	d.ended()
}

// awaitServers is what Dial does.
func (c *Client) awaitServers(ctx context.Context) error {
	tried := c.discovery.tried
	if _, patient := ctx.Deadline(); patient {
		tried = nil
	}
	select {
	case <-c.discovery.known:
		return nil
	case <-tried:
	case <-ctx.Done():
	}
	c.mu.Lock()
	known, cause := c.discovery.everKnown, c.discovery.err
	c.mu.Unlock()
	switch {
	case known:
		return nil
	case ctx.Err() != nil && cause != nil:
		return fmt.Errorf("%w: %w (%w)", ErrNoServers, cause, ctx.Err())
	case ctx.Err() != nil:
		return noServers(ctx.Err())
	}
	return noServers(cause)
}

// startLookup looks up what the core wants to know. It is called with the lock
// held.
func (c *Client) startLookup(l core.Lookup) {
	if l.Kind == core.LookupSRV {
		c.discovery.began()
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.lookups[l.ID] = cancel
	c.counts.lookups++
	c.wg.Go(func() {
		defer cancel()
		c.lookUp(ctx, l)
	})
}

// lookUp asks the resolver and hands in the answer.
func (c *Client) lookUp(ctx context.Context, l core.Lookup) {
	answer := LookUp(ctx, c.resolver, l)
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	delete(c.lookups, l.ID)
	if answer.Partial != nil {
		c.log(slog.LevelDebug, "weir: one family of a server's addresses was not found out; those known stay",
			slog.String("host", l.Name), slog.Any("error", answer.Partial))
	}
	answer.HandTo(c.core, now)
	c.settle(now, ob)
	c.mu.Unlock()
	c.flush(ob)
}
