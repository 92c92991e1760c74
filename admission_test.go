package weir

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func guarded() Request {
	r := oneToken()
	r.Guards = []Guard{inventory.Below(100 * time.Millisecond), inventory.Below(200 * time.Millisecond)}
	return r
}

// reportedMs returns the latencies that a server was told.
func reportedMs(s *responder) []uint32 {
	var ms []uint32
	for _, o := range s.Log().Reports {
		ms = append(ms, o.Latency)
	}
	return ms
}

// exactly is for an error that must come through as it is.
func exactly(want error) func(error) bool {
	return func(err error) bool {
		return err == want //nolint:errorlint // wrapped would be wrong
	}
}

func TestDo(t *testing.T) {
	broken := errors.New("the work's own")
	tests := map[string]struct {
		admission Admission
		script    func(*exchange)
		work      error
		ran       bool
		want      func(error) bool
		reports   int
	}{
		"granted": {
			Admission{Request: guarded()},
			nil, nil, true,
			exactly(nil), 1,
		},
		"work fails": {
			Admission{Request: guarded()},
			nil, broken, true,
			exactly(broken), 1,
		},
		"two trackers": {
			Admission{Request: oneToken(), Trackers: []LatencyTracker{inventory, Tracker("db", TrackerOptions{})}},
			nil, nil, true,
			exactly(nil), 2,
		},
		"guards are not told if trackers are named": {
			Admission{Request: guarded(), Trackers: []LatencyTracker{}},
			nil, nil, true,
			exactly(nil), 0,
		},
		"nothing to tell": {
			Admission{Request: oneToken()},
			nil, nil, true,
			exactly(nil), 0,
		},
		"rejected": {
			Admission{Request: guarded()},
			func(e *exchange) { e.Answer.Latencies[0] = 100 }, nil, false,
			func(err error) bool {
				var r *RejectedError
				return errors.Is(err, ErrRejected) && errors.As(err, &r) && !r.Decision.Granted() && r.Decision.Server() == 1000
			}, 0,
		},
		"no decision": {
			Admission{Request: guarded()},
			func(e *exchange) { e.Silent = true }, nil, false,
			func(err error) bool { return errors.Is(err, ErrTimeout) && !errors.Is(err, ErrRejected) }, 0,
		},
		"a report that fails": {
			Admission{Request: oneToken(), Trackers: []LatencyTracker{{}}},
			nil, broken, true,
			exactly(broken), 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				c := w.client()
				w.servers[0].Do(tt.script)
				runs := 0
				d, err := c.Do(context.Background(), tt.admission, func(context.Context) error {
					runs++
					pass(42 * time.Millisecond) // the work takes this long
					return tt.work
				})
				if !tt.want(err) {
					t.Errorf("err = %v", err)
				}
				if d.Granted() != tt.ran || (runs == 1) != tt.ran || runs > 1 {
					t.Errorf("%v; the work ran %d times", d, runs)
				}
				synctest.Wait()
				told := reportedMs(w.servers[0])
				if len(told) != tt.reports {
					t.Errorf("reported %v ms", told)
				}
				for _, ms := range told {
					if ms != 42 {
						t.Errorf("reported %v ms", told)
					}
				}
			})
		})
	}
}

func TestDoCountsLostReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		_, err := c.Do(context.Background(), Admission{Request: guarded()}, func(context.Context) error { return c.Close() })
		if err != nil {
			t.Error(err)
		}
		if n := c.Stats().LostReports; n != 1 {
			t.Errorf("%d lost reports", n)
		}
	})
}

func TestDoPassesPanicsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("recovered %v", got)
				}
			}()
			_, _ = c.Do(context.Background(), Admission{Request: guarded()}, func(context.Context) error { panic("boom") })
		}()
		synctest.Wait()
		if told := reportedMs(w.servers[0]); len(told) != 1 {
			t.Errorf("reported %v ms", told)
		}
	})
}

func TestDoHandsItsContextOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.client()
		type key struct{}
		ctx := context.WithValue(context.Background(), key{}, "x")
		_, err := c.Do(ctx, Admission{Request: oneToken()}, func(ctx context.Context) error {
			if ctx.Value(key{}) != "x" {
				t.Error("the work got another context")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
