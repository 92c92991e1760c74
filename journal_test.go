package weir

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/core"
)

// testLog is a logger's handler that notes the lines, after it did what a test
// wants done first.
type testLog struct {
	before func()

	mu    sync.Mutex
	lines []string
}

func (l *testLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *testLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *testLog) WithGroup(string) slog.Handler            { return l }

func (l *testLog) Handle(_ context.Context, r slog.Record) error {
	l.before()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Message)
	return nil
}

// count is how often a line was logged.
func (l *testLog) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if line == text {
			n++
		}
	}
	return n
}

func logTo(l *testLog) func(*Config) {
	return func(cfg *Config) { cfg.Logger = slog.New(l) }
}

const (
	lineKnown     = "weir: servers known"
	lineFailing   = "weir: no server answers; requests fail fast until one does"
	lineRecovered = "weir: a server answers again; requests are sent"
	lineMissing   = "weir: the logger was too slow; lines are missing"
)

// A logger that blocks costs nobody a decision: the timer that trips failing fast,
// the reader of the answer that ends it and the lookups go on without it.
func TestLoggerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const probe = 100 * time.Millisecond
		stuck := make(chan struct{})
		log := &testLog{before: func() { <-stuck }}
		w, z := discoverable(t, 1, time.Second)
		c := w.client(failingAfter(2, probe), logTo(log), func(cfg *Config) { cfg.Zone, cfg.Resolver = "rl.test", z })
		acquire(t, c)
		for range 3 {
			w.silence(0)
			for range 2 {
				if d, err := took(c); !errors.Is(err, ErrTimeout) || errors.Is(err, ErrFailFast) || d != horizon {
					t.Errorf("%v after %v", err, d)
				}
			}
			if d, err := took(c); !errors.Is(err, ErrFailFast) || d != 0 {
				t.Errorf("%v after %v", err, d)
			}
			w.speak()
			pass(2 * probe)
			if d, err := took(c); err != nil || d != 0 {
				t.Errorf("%v after %v", err, d)
			}
		}
		if n := log.count(lineKnown); n != 0 {
			t.Fatalf("%d lines", n)
		}
		close(stuck)
		synctest.Wait()
		if log.count(lineKnown) != 1 || log.count(lineFailing) != 3 || log.count(lineRecovered) != 3 || log.lines[0] != lineKnown || log.lines[6] != lineRecovered {
			t.Errorf("%q", log.lines)
		}
	})
}

// A logger may itself ask the client, as one does that is limited in its rate.
func TestLoggerThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var c *Client
		var asked []error
		ready := make(chan struct{})
		log := &testLog{before: func() {
			<-ready
			_, err := took(c)
			asked = append(asked, err)
		}}
		c = w.client(failingAfter(1, 100*time.Millisecond), logTo(log))
		close(ready)
		w.silence(0)
		if _, err := took(c); !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		w.speak()
		pass(time.Second)
		synctest.Wait()
		if log.count(lineFailing) != 1 || log.count(lineRecovered) != 1 || len(asked) != len(log.lines) {
			t.Errorf("%q, %v", log.lines, asked)
		}
	})
}

// What a slow logger has no room for is dropped and counted; what waits is written
// before Close returns, and nothing after it.
func TestLoggerThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &testLog{before: func() { pass(time.Minute) }}
		w := newWorld(t, 1)
		c := w.client(logTo(log))
		synctest.Wait() // the first line is under way
		flap := func(times int) {
			for range times {
				c.mu.Lock()
				c.handle(&core.Event{Kind: core.EventRecovered}, nil)
				c.mu.Unlock()
			}
		}
		flap(maxLines + 7)
		pass(time.Hour + 10*time.Minute)
		if log.count(lineKnown) != 1 || log.count(lineRecovered) != maxLines || log.count(lineMissing) != 1 {
			t.Errorf("%d of %d lines, %d times missing", log.count(lineRecovered), maxLines, log.count(lineMissing))
		}
		flap(3)
		begin := time.Now()
		c.Close()
		if took := time.Since(begin); took != 3*time.Minute || log.count(lineRecovered) != maxLines+3 || log.count(lineMissing) != 1 {
			t.Errorf("closed after %v with %d lines", took, log.count(lineRecovered))
		}
		flap(1)
		pass(time.Hour)
		if n := log.count(lineRecovered); n != maxLines+3 {
			t.Errorf("%d lines in all", n)
		}
	})
}

// Log lines tell what discovery did not take, and say nothing of it when it took all.
func TestLinesOfWhatWasNotTaken(t *testing.T) {
	for _, tc := range []struct {
		skipped core.Skipped
		want    string
	}{
		{core.Skipped{}, "level=INFO msg=known\n"},
		{core.Skipped{Future: 2, Excess: 1}, "level=INFO msg=known skipped.future=2 skipped.excess=1\n"},
	} {
		var s strings.Builder
		logger := slog.New(slog.NewTextHandler(&s, nil))
		logger.Info("known", skipped(tc.skipped))
		if _, line, _ := strings.Cut(s.String(), " "); line != tc.want {
			t.Errorf("%+v: %q", tc.skipped, line)
		}
	}
}
