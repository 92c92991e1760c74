//go:build !race

// Under the race detector sync.Pool forgets at random, so that nothing can be
// said about allocations.

package weir

import (
	"context"
	"testing"
	"time"
)

// leastAllocs measures f several times and returns the least: on a busy machine
// a timeout, which is an error and allocates, is nobody's fault.
func leastAllocs(f func()) float64 {
	least := 1e9
	for range 20 {
		if least = min(least, testing.AllocsPerRun(200, f)); least == 0 {
			break
		}
	}
	return least
}

// In the steady state a decision allocates nothing: not in the caller, the
// readers, the timer, nor in the server that answers here.
func TestAcquireAllocatesNothing(t *testing.T) {
	for name, r := range map[string]Request{"1 bucket": oneToken(), "3 buckets and a guard": threeAndOne()} {
		for _, servers := range []int{1, 2} {
			c := benchClient(t, servers)
			ctx, cancel := context.WithCancel(context.Background())
			ask := func() { _, _ = c.Acquire(ctx, r) }
			settle(c, ask)
			if n := leastAllocs(ask); n != 0 {
				t.Errorf("%s, %d servers: %v allocations per decision", name, servers, n)
			}
			cancel()
		}
	}
}

// Neither does the workflow around it, and a request that is written where it is
// used.
func TestDoAllocatesNothing(t *testing.T) {
	c := benchClient(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	work := func(context.Context) error { return nil }
	do := func() {
		_, _ = c.Do(ctx, Admission{Request: Request{
			Resources: []Resource{checkout.Take(1)},
			Guards:    []Guard{inventory.Below(time.Second)},
		}}, work)
	}
	settle(c, do)
	if n := leastAllocs(do); n != 0 {
		t.Errorf("%v allocations per admission", n)
	}
}

func TestReportAllocatesNothing(t *testing.T) {
	c := benchClient(t, 2)
	report := func() { _ = c.Report(inventory.Took(18 * time.Millisecond)) }
	report()
	if n := leastAllocs(report); n != 0 {
		t.Errorf("%v allocations per report", n)
	}
}
