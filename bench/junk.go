package main

import (
	"context"
	"errors"
	"time"
)

// compareJunk measures what a forged datagram costs the server beside one that it decides: both come in a
// flood that nobody slows down, so that both come in batches as large as they get.
func compareJunk(ctx context.Context, c *comparing) (ours, theirs []sample, err error) {
	return inTurns(c.plan.Groups, func() (sample, error) { return c.flooded(ctx, "junk") },
		func() (sample, error) { return c.flooded(ctx, honest) })
}

// flooded measures the server in a flood of datagrams of one kind.
func (c *comparing) flooded(ctx context.Context, kind string) (sample, error) {
	const settle = 200 * time.Millisecond
	t := c.ours.target
	stop, err := t.flood(job{Addr: t.addr.String(), Key: c.tenant.key.Encode(), Kind: kind, Rate: 0})
	if err != nil {
		return sample{}, err
	}
	defer stop()
	var seen [2]figures
	var at [2]time.Time
	for i, wait := range []time.Duration{settle, c.plan.Slice} {
		select {
		case <-ctx.Done():
			return sample{}, context.Cause(ctx)
		case <-time.After(wait):
		}
		at[i] = time.Now()
		if seen[i], err = t.figures(ctx); err != nil {
			return sample{}, err
		}
	}
	got := seen[1].since(seen[0])
	if got.datagrams == 0 {
		return sample{}, errors.New("nothing arrived")
	}
	return sample{PerSecond: got.datagrams / at[1].Sub(at[0]).Seconds(), CPU: got.cpu * 1e6 / got.datagrams}, nil
}
