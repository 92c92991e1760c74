package demo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Config is what a demo needs to know.
type Config struct {
	// Binary is the path of the weir command, which the children run.
	Binary string
	// Pace says how long the parts take; the zero value is the usual pace.
	Pace Pace
	// Keep leaves the servers running at the end, until the context ends.
	Keep bool
	// Narrator is told what happens.
	Narrator Narrator
}

// Pace says how long the parts of a demo take.
type Pace struct {
	Pause     time.Duration // after each act, to read; negative for none
	BothAlive time.Duration // load while both servers live
	Dead      time.Duration // load while the dead one is still in DNS
	Dropped   time.Duration // load after the client has dropped it
	Limit     time.Duration // everything, without Keep
}

func (p Pace) orDefault() Pace {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&p.Pause, 800*time.Millisecond)
	set(&p.BothAlive, 4*time.Second)
	set(&p.Dead, 5*time.Second)
	set(&p.Dropped, 4*time.Second)
	set(&p.Limit, 50*time.Second)
	return p
}

// Expected is about how long a demo takes.
func (p Pace) Expected() time.Duration {
	p = p.orDefault()
	return (p.BothAlive + p.Dead + p.Dropped + 5*max(p.Pause, 0) + 3*time.Second).Round(time.Second)
}

// Result is what a demo measured and whether it kept its promises.
type Result struct {
	Phases  []PhaseStats // in their order
	Checks  []Check
	Elapsed time.Duration // without the time that Keep lasted
}

// Check is one promise.
type Check struct {
	Promise string
	Kept    bool
	Got     string // in figures
	Timing  bool   // whether a slow machine alone could break it
}

// Kept reports whether all promises were kept.
func (r *Result) Kept() bool {
	for _, c := range r.Checks {
		if !c.Kept {
			return false
		}
	}
	return true
}

// ErrPromise is the error of a demo in which something promised did not happen.
var ErrPromise = errors.New("demo: something promised did not happen; see the checks above")

// Run runs the demo and returns when everything that it started is gone, however
// it ends: with its story told, with an error, or because ctx ended. With Keep it
// then serves until ctx ends, which is no error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg.Pace = cfg.Pace.orDefault()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := newStage(cfg, cancel)
	if err != nil {
		return nil, err
	}
	err = s.perform(ctx)
	if closeErr := s.close(); err == nil {
		err = closeErr
	}
	return &s.result, err
}

// perform plays the acts, and then keeps the servers if that is wanted.
func (s *stage) perform(ctx context.Context) error {
	begun := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, s.cfg.Pace.Limit,
		fmt.Errorf("demo: not done after %v; is this machine very busy?", s.cfg.Pace.Limit))
	defer cancel()
	s.tell(Opening{Expected: s.cfg.Pace.Expected(), System: runtime.GOOS})
	for i, act := range []func(context.Context) error{s.setUp, s.tokens, s.atomic, s.guard, s.failover} {
		s.tell(ActBegins{Act: Act(i + 1)})
		if err := act(limited); err != nil {
			return ended(limited, err)
		}
		if err := s.pause(limited, s.cfg.Pace.Pause); err != nil {
			return ended(limited, err)
		}
	}
	s.result.Elapsed = time.Since(begun)
	s.tell(ActBegins{Act: ActSummary})
	wait, _ := s.patience()
	s.tell(Summary{Result: &s.result, Wait: wait})
	if !s.result.Kept() {
		return ErrPromise
	}
	cancel()
	if s.cfg.Keep {
		return s.keep(ctx)
	}
	s.tell(Farewell{})
	return nil
}

// ended puts the reason why everything ends in place of an error that only says
// that it was interrupted.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (s *stage) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stage) tell(e Event) { s.cfg.Narrator.Tell(e) }

// check notes whether a promise was kept.
func (s *stage) check(c Check) {
	s.result.Checks = append(s.result.Checks, c)
	s.tell(Checked(c))
}
