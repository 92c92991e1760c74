package weir

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/core"
)

// A Request is what is asked: all of it is decided as one. A request without
// resources and guards is granted at once and asks nobody.
type Request struct {
	Resources []Resource
	Guards    []Guard
	// Label is under which name servers count the request in their metrics; any
	// bytes, "" for none.
	Label string
}

// Acquire asks once and returns the decision. Nothing is kept of r.
//
// Without a decision the error is one of this package's ([ErrTimeout],
// [ErrFailFast], [ErrNoServers], [ErrIO], [ErrTooManyInFlight], [ErrClosed],
// [*ConfigError]) or ctx's own. It never waits longer than the policy's horizon
// once servers are known, and never for a refresh of what is known. While none is
// known it waits for the discovery attempt that is under way, if one is, and for
// no other.
//
// When ctx ends, Acquire returns at once; whether tokens were consumed is then
// unknown.
func (c *Client) Acquire(ctx context.Context, r Request) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, c.refused(undecided(err))
	}
	k := c.getCall()
	defer c.putCall(k)
	if err := k.encode(r.Resources, r.Guards, c.layout); err != nil {
		return Decision{}, c.refused(err)
	}
	if err := c.submit(ctx, k, r.Label); err != nil {
		return Decision{}, err
	}
	// The request is under way: k is shared until it has ended.
	select {
	case <-k.done:
	case <-ctx.Done():
		if c.abandon(k) {
			k.releaseSockets()
			return Decision{}, undecided(ctx.Err())
		}
		<-k.done // it has just ended
	}
	k.releaseSockets()
	if k.err != nil {
		return Decision{}, k.err
	}
	return k.decision, nil
}

// submit starts the request, after the discovery attempt under way if no server
// is known.
func (c *Client) submit(ctx context.Context, k *call, label string) error {
	attempt, err := c.trySubmit(k, label)
	if attempt == nil {
		return err
	}
	select {
	case <-attempt:
	case <-ctx.Done():
		return noServers(ctx.Err())
	}
	_, err = c.trySubmit(k, label) // waits for no second attempt
	return err
}

// trySubmit starts the request, or says why not and, if no server is known,
// which discovery attempt is under way.
func (c *Client) trySubmit(k *call, label string) (attempt <-chan struct{}, err error) {
	r := core.Request{Guards: k.guards, Resources: k.resources, Label: label}
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	id, err := c.core.Submit(now, &r)
	switch {
	case err == nil:
		k.id = id
		c.calls[id] = k
	case errors.Is(err, core.ErrFailFast):
		err = c.failedFast(now)
	}
	c.settle(now, ob)
	running, cause := c.discovery.attempt, c.discovery.err
	c.mu.Unlock()
	c.depart(ob)
	if err == nil {
		return nil, nil
	}
	if err = translate(err); errors.Is(err, ErrNoServers) {
		return running, noServers(cause)
	}
	return nil, err
}

// abandon ends a request that nobody waits for any more. It returns false if the
// request has ended by itself.
func (c *Client) abandon(k *call) bool {
	ob := c.getOutbox()
	now := c.clock()
	c.mu.Lock()
	_, open := c.calls[k.id]
	if open {
		delete(c.calls, k.id)
		c.core.Cancel(now, k.id)
		c.settle(now, ob)
	}
	c.mu.Unlock()
	c.flush(ob)
	return open
}

// refused is the error of a call that err kept from asking: on a closed client
// that it is closed, as of every call.
func (c *Client) refused(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return err
}

// undecided is the error of a call whose context ended.
func undecided(err error) error { return fmt.Errorf("weir: no decision: %w", err) }
