package server

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// spread has the listener's workers even out their loads, unless there is one only, or
// they shall not.
func (l *listener) spread(st *settings) error {
	if len(l.workers) < 2 || st.NoSteering {
		return nil
	}
	var seed [32]byte
	if _, err := io.ReadFull(st.Entropy, seed[:]); err != nil {
		return fmt.Errorf("server: drawing a seed for steering: %w", err)
	}
	flows := make([]*flows, len(l.workers))
	for i, w := range l.workers {
		flows[i] = newFlows()
		w.flows = flows[i]
	}
	l.received = make([]uint64, len(l.workers))
	l.balancer = newBalancer(flows, rand.New(rand.NewChaCha8(seed)))
	return nil
}

// steer balances the listener's workers until the context ends.
func (l *listener) steer(ctx context.Context, clock Clock) {
	next := time.NewTimer(steerEvery) // and not a ticker: a step is never cut short because one was late
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		l.balance(clock)
		next.Reset(steerEvery)
	}
}

// balance makes one step.
func (l *listener) balance(clock Clock) {
	for i, w := range l.workers {
		l.received[i] = w.received.Load()
	}
	l.balancer.step(clock.Now().Mono, l.received)
}
