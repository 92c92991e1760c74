package soak

import (
	"context"
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	restarts = flag.Int("restarts", 2, "how often the oldest server is killed and restarted")
	callers  = flag.Int("callers", 64, "how many goroutines ask, each as fast as it is answered")

	// With the default policy a process that gets no processor for 60 ms fails the
	// test, and beside other tests that happens. So it is what one asks for.
	requests = flag.String("policy", "default replays=20 final=29", "the client's request policy; \"default\" for the real test")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	members   = 3
	warm      = 500 * time.Millisecond // load before the first kill
	deadFor   = 500 * time.Millisecond // from a kill to the restart
	unlisted  = 200 * time.Millisecond // from the restart to DNS
	stepLimit = time.Minute            // for anything that is waited for
)

// The oldest of three servers is killed and restarted again and again, while many
// callers ask. DNS names the dead one for a while, then
// the restarted one is up and DNS does not know of it, then it is a member, the
// youngest. There is no question without a decision.
func TestOldestIsKilledAgainAndAgain(t *testing.T) {
	s := newStage(t)
	for range members {
		s.start()
	}
	s.publish()
	s.connect()
	l := startLoad(s.client, *callers)
	stalls := watchStalls()
	defer func() {
		l.end()
		report(t, l, stalls.end(), s.queue)
	}()

	s.wait(warm)
	for n := range *restarts {
		if l.failed() {
			t.Logf("stopped before restart %d of %d", n+1, *restarts)
			return
		}
		oldest := s.oldest()
		s.kill(oldest)
		l.enter(phase{restart: n + 1, dead: true, at: time.Now()})
		s.wait(deadFor)
		s.restart(oldest)
		s.wait(unlisted)
		s.publish()
		s.await("the client to know the restarted server and no more the dead one", s.isKnown)
		l.enter(phase{restart: n + 1, at: time.Now()})
		s.answers(oldest)
	}
	s.wait(warm)
}

// wait lets the load go on for a while. Nothing depends on how long it is.
func (s *stage) wait(d time.Duration) {
	s.t.Helper()
	select {
	case <-time.After(d):
	case err := <-s.lost:
		s.t.Fatal(err)
	}
}

// await polls until something holds.
func (s *stage) await(what string, holds func(context.Context) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), stepLimit)
	defer cancel()
	for !holds(ctx) {
		if ctx.Err() != nil {
			s.t.Fatalf("waited %v for %s", stepLimit, what)
		}
		s.wait(5 * time.Millisecond)
	}
}
