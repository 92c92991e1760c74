package weir

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/ident"
)

// Wait asks until the request is granted or ctx ends. A ctx that never ends waits
// for ever, if it must. Nothing is kept of r once Wait returns.
//
// No error is tried again: one of [Client.Acquire] is returned at once, together
// with the last rejection, if there was one. When ctx ends after a rejection, so
// are that and an error that matches ctx's and says what was missing last. A
// request that can never be granted is not even asked: the error is then a
// [*ConfigError] about more tokens than the bucket's limit, a limit or window of
// 0, or a threshold of 0. A closed client returns [ErrClosed] at once.
//
// Between two questions Wait rests, for as long as the bucket that lacks most
// would take to free what is missing if it were used evenly: window * deficit /
// limit, at least 1 ms. Where a guard has failed or the server has no room for
// the bucket it rests for 50 ms (an eighth of the tracker's TTL, if that is
// less). Each rejection in a row makes it half as long again, up to the bucket's
// window, or to 1 s. All of it is taken at random from three to five quarters, so
// that callers do not ask in step.
//
// There is no queue: whoever asks first after a token is free gets it, however
// long another has waited.
func (c *Client) Wait(ctx context.Context, r Request) (Decision, error) {
	if err := r.grantable(); err != nil {
		return Decision{}, c.refused(err)
	}
	var last Decision
	for rejections := 0; ; rejections++ {
		d, err := c.Acquire(ctx, r)
		switch {
		case err == nil && d.Granted():
			return d, nil
		case err != nil && rejections > 0 && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return last, fmt.Errorf("%w; the last answer: %v", err, last)
		case err != nil:
			return last, err
		}
		last = d
		err = c.rest(ctx, jittered(pause(&d, rejections)))
		if errors.Is(err, ErrClosed) {
			return last, err
		}
		if err != nil {
			return last, fmt.Errorf("weir: not granted: %w; the last answer: %v", err, last)
		}
	}
}

// rest lets time pass, unless ctx or the client end first.
func (c *Client) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return c.refused(ctx.Err()) // of a closed client, that it is closed
}

const (
	leastPause = time.Millisecond
	firstPause = 50 * time.Millisecond // where time alone frees nothing
	mostPause  = time.Second
)

// pause returns how long to rest after a rejection that so many others came
// before.
func pause(d *Decision, before int) time.Duration {
	longest := leastPause
	for _, r := range d.resourceResults() {
		b := &r.Resource.Bucket
		switch {
		case r.Covered():
		case r.NoRoom():
			longest = max(longest, grown(firstPause, mostPause, before))
		default:
			freed := min(float64(b.window)*float64(r.Deficit)/float64(b.limit), float64(b.window))
			longest = max(longest, grown(time.Duration(freed), b.window, before))
		}
	}
	for _, g := range d.guardResults() {
		if !g.Passed {
			longest = max(longest, grown(min(firstPause, g.Guard.Tracker.opts.TTL/8), mostPause, before))
		}
	}
	return longest
}

// grown returns a pause that is half as long again after each of some rejections.
func grown(first, most time.Duration, before int) time.Duration {
	return time.Duration(min(float64(max(first, leastPause))*math.Pow(1.5, float64(before)), float64(most)))
}

// jittered returns three to five quarters of a pause. This randomness keeps no
// secret.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

// grantable refuses what no server would ever grant. What is not well formed is
// left to be refused in the asking.
func (r *Request) grantable() error {
	for i := range r.Guards {
		if r.Guards[i].Threshold == 0 {
			return badBlock("Guards", i, "Threshold", "it is 0, and no latency is below that; waiting is in vain")
		}
	}
	for i := range r.Resources {
		b := &r.Resources[i].Bucket
		tokens := r.Resources[i].Tokens
		if tokens <= 0 || b.limit < 0 || b.id == (ident.ID{}) {
			continue
		}
		if b.limit == 0 {
			return badBlock("Resources", i, "Bucket.Limit", "it is 0, and grants nothing; waiting is in vain")
		}
		if b.window == 0 {
			return badBlock("Resources", i, "Bucket.Window", "it is 0, and grants nothing; waiting is in vain")
		}
		if tokens += earlier(r.Resources, i); tokens > b.limit {
			return badBlock("Resources", i, "Tokens", fmt.Sprintf(
				"%d of one bucket at once are over its limit of %d; waiting is in vain", tokens, b.limit))
		}
	}
	return nil
}

// earlier returns how many tokens of the i-th resource's bucket the resources
// before it want: a server decides on all of them together.
func earlier(resources []Resource, i int) (tokens int) {
	for j := range i {
		if resources[j].Bucket.id == resources[i].Bucket.id {
			tokens += resources[j].Tokens
		}
	}
	return tokens
}
