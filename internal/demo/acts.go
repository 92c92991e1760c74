package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

const (
	window  = time.Minute // longer than a demo: nothing comes back on the way
	fast    = 18 * time.Millisecond
	slow    = 250 * time.Millisecond
	allowed = 100 * time.Millisecond
	samples = 20
)

var (
	checkout  = weir.Bucket("checkout", 5, window)
	alice     = weir.Bucket("user:alice", 3, window)
	everybody = weir.Bucket("everybody", 100, window)
	stock     = weir.Bucket("stock", 100, window)
	inventory = weir.Tracker("inventory", weir.TrackerOptions{TTL: window, MaxSamples: samples, MinSamples: 5})
)

// ask asks once and tells what came of it.
func (s *stage) ask(ctx context.Context, n int, r weir.Request) (weir.Decision, error) {
	begun := time.Now()
	d, err := s.client.Acquire(ctx, r)
	if err != nil {
		return d, err
	}
	s.tell(Asked{N: n, By: s.nameOf(d.Server()), Decision: d, Took: time.Since(begun)})
	return d, nil
}

// read asks how full buckets are, which takes nothing of them.
func (s *stage) read(ctx context.Context, buckets ...weir.RateBucket) ([]weir.ResourceResult, error) {
	var r weir.Request
	for _, b := range buckets {
		r.Resources = append(r.Resources, b.Take(0))
	}
	d, err := s.client.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return d.Resources(), nil
}

func take(n int, buckets ...weir.RateBucket) weir.Request {
	var r weir.Request
	for _, b := range buckets {
		r.Resources = append(r.Resources, b.Take(n))
	}
	return r
}

// tokens is the second act: grants until the bucket is full, then a rejection.
func (s *stage) tokens(ctx context.Context) error {
	granted := 0
	var last weir.Decision
	for n := range checkout.Limit() + 1 {
		var err error
		if last, err = s.ask(ctx, n+1, take(1, checkout)); err != nil {
			return err
		}
		if last.Granted() {
			granted++
		}
	}
	s.check(Check{
		Promise: fmt.Sprintf("%d granted, the next one rejected", checkout.Limit()),
		Kept:    granted == checkout.Limit() && !last.Granted(),
		Got:     fmt.Sprintf("%d of %d granted", granted, checkout.Limit()+1),
	})
	return nil
}

// atomic is the third act: of two limits one lacks tokens, and nothing of the
// other is taken.
func (s *stage) atomic(ctx context.Context) error {
	if _, err := s.ask(ctx, 1, take(2, alice, everybody)); err != nil {
		return err
	}
	before, err := s.read(ctx, alice, everybody)
	if err != nil {
		return err
	}
	s.tell(Read{before})
	d, err := s.ask(ctx, 2, take(2, alice, everybody))
	if err != nil {
		return err
	}
	after, err := s.read(ctx, alice, everybody)
	if err != nil {
		return err
	}
	s.tell(Read{after})
	s.check(Check{
		Promise: "where one limit lacks tokens, nothing of the other is taken",
		Kept: !d.Granted() && d.Resources()[0].Deficit == 1 && d.Resources()[1].Covered() &&
			before[0].ActualRate == 2 && before[1].ActualRate == 2 && after[0].ActualRate == 2 && after[1].ActualRate == 2,
		Got: fmt.Sprintf("%d and %d used before, %d and %d after",
			before[0].ActualRate, before[1].ActualRate, after[0].ActualRate, after[1].ActualRate),
	})
	return nil
}

// guard is the fourth act: a guard trips on reported latency and recovers. A guard that
// has tripped is paced (docs/pacing.md): once what was inside has come out, the server
// forgets the slow samples and lets one in now and then. So recovery is waited for.
func (s *stage) guard(ctx context.Context) error {
	guards := []weir.Guard{inventory.Below(allowed)}
	request := take(1, stock)
	request.Guards = guards
	var granted [3]bool
	var estimates [3]time.Duration
	for i, took := range []time.Duration{fast, slow, fast} {
		recovery := i == 2
		if recovery {
			if _, err := s.untilGranted(ctx, weir.Request{Guards: guards}); err != nil {
				return err
			}
		}
		if err := s.report(ctx, took); err != nil {
			return err
		}
		ask := s.client.Acquire
		if recovery {
			ask = s.untilGranted
		}
		begun := time.Now()
		d, err := ask(ctx, request)
		if err != nil {
			return err
		}
		s.tell(Asked{N: i + 1, By: s.nameOf(d.Server()), Decision: d, Took: time.Since(begun)})
		granted[i], estimates[i] = d.Granted(), d.Guards()[0].Latency
	}
	used, err := s.read(ctx, stock)
	if err != nil {
		return err
	}
	s.check(Check{
		Promise: "the guard trips when the work is slow, and recovers",
		Kept: granted == [3]bool{true, false, true} && used[0].ActualRate == 2 &&
			estimates == [3]time.Duration{fast, slow, fast},
		Got: fmt.Sprintf("estimates %v, %v, %v; %d tokens used", estimates[0], estimates[1], estimates[2], used[0].ActualRate),
	})
	return nil
}

// untilGranted asks until the request is granted.
func (s *stage) untilGranted(ctx context.Context, r weir.Request) (weir.Decision, error) {
	for {
		d, err := s.client.Acquire(ctx, r)
		if err != nil || d.Granted() {
			return d, err
		}
		if err := s.pause(ctx, poll); err != nil {
			return d, err
		}
	}
}

// report says as many times as the tracker has samples how long the work took,
// and waits until the servers have taken it in: nothing answers a report. It looks at
// the estimate through a guard that never trips, because a paced one shows another.
func (s *stage) report(ctx context.Context, took time.Duration) error {
	observations := make([]weir.Observation, samples)
	for i := range observations {
		observations[i] = inventory.Took(took)
	}
	if err := s.client.Report(observations...); err != nil {
		return err
	}
	s.tell(Reported{Reports: samples, Latency: took})
	for {
		d, err := s.client.Acquire(ctx, weir.Request{Guards: []weir.Guard{inventory.Below(window)}})
		if err != nil {
			return err
		}
		if d.Guards()[0].Latency == took {
			return nil
		}
		if err := s.pause(ctx, poll); err != nil {
			return err
		}
	}
}
