package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/ident"
)

const rowEvery = time.Second

// failover is the last act: the oldest server is killed under load, its answers
// are missed for as long as DNS names it, and then no more.
func (s *stage) failover(ctx context.Context) error {
	oldest, second := s.servers[0], s.servers[1]
	names := s.names()
	wait, horizon := s.patience()
	s.tell(LoadBegins{Callers: callers, Every: callEvery, Wait: wait, Horizon: horizon})
	begun := time.Now()
	l := startLoad(ctx, s.client)
	defer l.end()
	rows := func(d time.Duration) error { return s.rows(ctx, l, begun, names, d) }

	if err := rows(s.cfg.Pace.BothAlive); err != nil {
		return err
	}
	if err := oldest.Kill(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	l.enter(OldestDead)
	s.tell(Killed{Name: oldest.name, PID: oldest.PID()})
	if err := rows(s.cfg.Pace.Dead); err != nil {
		return err
	}
	s.servers = s.servers[1:]
	if err := s.writeMembers(); err != nil {
		return err
	}
	removed := time.Now()
	s.tell(Removed{Name: oldest.name})
	if err := s.await(ctx, func() bool { return s.forgotten(oldest.id) }); err != nil {
		return fmt.Errorf("demo: the client still asks the dead server: %w", err)
	}
	s.tell(LoadRow{At: time.Since(begun), Stats: l.row(names)})
	l.enter(OldestDropped)
	s.tell(Dropped{Name: oldest.name, Took: time.Since(removed)})
	if err := rows(s.cfg.Pace.Dropped); err != nil {
		return err
	}
	l.end()
	for p := range Phase(phases) {
		s.result.Phases = append(s.result.Phases, l.total(p, names))
	}
	s.checkLoad(second)
	return s.checkMemory(ctx, second)
}

// names returns a function from IDs to the names that servers have now, which
// the dead keep.
func (s *stage) names() func(ident.ServerID) string {
	names := map[ident.ServerID]string{}
	for _, srv := range s.servers {
		names[srv.id] = srv.name
	}
	return func(id ident.ServerID) string { return names[id] }
}

// rows tells of the load every second for as long as it is said to go on.
func (s *stage) rows(ctx context.Context, l *load, begun time.Time, names func(ident.ServerID) string, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := s.pause(ctx, min(left, rowEvery)); err != nil {
			return err
		}
		s.tell(LoadRow{At: time.Since(begun), Stats: l.row(names)})
	}
}

// forgotten reports whether the client no longer knows a server.
func (s *stage) forgotten(id ident.ServerID) bool {
	for _, known := range s.client.Servers() {
		if known.ID == id {
			return false
		}
	}
	return true
}

// checkLoad holds what the load measured against what was promised.
func (s *stage) checkLoad(second *serverChild) {
	asked, failed, rejected, others := 0, 0, 0, 0
	var first error
	for _, p := range s.result.Phases {
		asked += p.Decisions + p.Failed
		failed += p.Failed
		rejected += p.Rejected
		if first == nil {
			first = p.FirstErr
		}
		if p.Phase != BothAlive {
			others += p.Decisions - p.By[second.name]
		}
	}
	got := fmt.Sprintf("%d questions, %d failed", asked, failed)
	if first != nil {
		got += ": " + first.Error()
	}
	s.check(Check{Promise: "not one request fails when a server is killed", Kept: asked > 0 && failed == 0 && rejected == 0, Got: got})
	dead, dropped := s.result.Phases[OldestDead], s.result.Phases[OldestDropped]
	s.check(Check{
		Promise: "the second server takes over",
		Kept:    dead.Decisions > 0 && dropped.Decisions > 0 && others == 0,
		Got:     fmt.Sprintf("%d of %d decisions after the kill by %s", dead.Decisions+dropped.Decisions-others, dead.Decisions+dropped.Decisions, second.name),
	})
	s.check(Check{
		Promise: "decisions are fast again when DNS has dropped it",
		Kept:    dropped.P50 < dead.P50,
		Got:     fmt.Sprintf("median %v, was %v", round(dropped.P50), round(dead.P50)),
		Timing:  true,
	})
}

// checkMemory asks for what the dead server has given away: the second one knows
// of it, because clients ask both.
func (s *stage) checkMemory(ctx context.Context, second *serverChild) error {
	d, err := s.ask(ctx, checkout.Limit()+2, take(1, checkout))
	if err != nil {
		return err
	}
	r := d.Resources()[0]
	s.check(Check{
		Promise: "the second server has counted all along",
		Kept:    !d.Granted() && d.Server() == second.id && r.ActualRate == uint32(checkout.Limit()),
		Got:     fmt.Sprintf("%s still has %d of %d tokens used", checkout.Name(), r.ActualRate, checkout.Limit()),
	})
	return nil
}

// round keeps three digits or so of a duration.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
