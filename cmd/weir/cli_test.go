package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/apikey"
)

// testIO returns what a command reads and writes in a test.
func testIO(in string, env map[string]string) (std *stdio, out, errs *bytes.Buffer) {
	out, errs = new(bytes.Buffer), new(bytes.Buffer)
	std = &stdio{in: strings.NewReader(in), out: out, err: errs, getenv: func(name string) string { return env[name] }}
	return std, out, errs
}

// model is the real command line.
func model(t *testing.T) *kong.Application {
	t.Helper()
	std, _, _ := testIO("", nil)
	parser, err := newParser(std, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

// TestEveryCommandHasExamples holds that each command's long help shows how to
// use it, with lines that its parser takes.
func TestEveryCommandHasExamples(t *testing.T) {
	leaves := model(t).Leaves(false)
	if len(leaves) < 7 {
		t.Fatalf("there are %d commands", len(leaves))
	}
	for _, n := range leaves {
		examples := 0
		for line := range strings.Lines(n.Detail) {
			if strings.HasPrefix(line, "    ") && strings.Contains(line, "weir "+n.Path()) {
				examples++
			}
		}
		if examples == 0 {
			t.Errorf("the help of weir %s shows no example", n.Path())
		}
		if n.Help == "" {
			t.Errorf("weir %s has no short help", n.Path())
		}
		for _, v := range n.Values() {
			if v.Help == "" {
				t.Errorf("weir %s: %s has no help", n.Path(), v.Name)
			}
		}
	}
}

// TestNoFlagTakesAKey holds that a key can come from a file or the environment
// only.
func TestNoFlagTakesAKey(t *testing.T) {
	for _, n := range model(t).Leaves(false) {
		for _, group := range n.AllFlags(false) {
			for _, f := range group {
				if strings.Contains(f.Name, "key") && !f.IsBool() && !strings.HasSuffix(f.Tag.Type, "path") {
					t.Errorf("weir %s takes a key as the value of --%s", n.Path(), f.Name)
				}
			}
		}
	}
}

// TestTrackerDefaultsAgree holds that a report feeds the tracker that a guard
// asks, unless told otherwise.
func TestTrackerDefaultsAgree(t *testing.T) {
	parse := func(c *cli, args ...string) {
		parser, err := kong.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatal(err)
		}
	}
	var asks, tells cli
	parse(&asks, "acquire", "--guard", "inventory<100ms")
	parse(&tells, "report", "inventory=18ms")
	guard, err := parseGuard(asks.Acquire.Guard[0], &asks.Acquire.trackerFlags)
	if err != nil {
		t.Fatal(err)
	}
	observation, err := parseObservation(tells.Report.Observation[0], &tells.Report.trackerFlags)
	if err != nil {
		t.Fatal(err)
	}
	if guard.Tracker != observation.Tracker {
		t.Errorf("acquire asks %+v, report feeds %+v", guard.Tracker.Options(), observation.Tracker.Options())
	}
	if o := guard.Tracker.Options(); o.MinSamples != 1 || uint32(o.BufferSize) > apikey.DefaultQuotas().LatencyBufferSize {
		t.Errorf("the defaults are %+v: one report must have an effect, and a key of default quotas must hold them", o)
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		out    string
		errs   string
	}{
		{[]string{"--help"}, 0, "Usage: weir", ""},
		{[]string{"key", "--help"}, 0, "Usage: weir key", ""},
		{[]string{"key", "new", "--help", "--nonsense"}, 64, "", "unknown flag --nonsense"},
		{nil, 64, "", "expected one of"},
		{[]string{"key"}, 64, "", "expected one of"},
		{[]string{"key", "inspect"}, 1, "", "a key was expected"},
		{[]string{"version"}, 0, "weir ", ""},
		{[]string{"acquire"}, 64, "", "nothing to ask for"},
	} {
		std, out, errs := testIO("", nil)
		if got := run(context.Background(), c.args, std); got != c.status {
			t.Errorf("weir %q: status %d, want %d", c.args, got, c.status)
		}
		for _, s := range []struct{ name, got, want string }{{"output", out.String(), c.out}, {"errors", errs.String(), c.errs}} {
			if !strings.Contains(s.got, s.want) || s.want == "" && s.got != "" {
				t.Errorf("weir %q: %s %q, want %q in it", c.args, s.name, s.got, s.want)
			}
		}
	}
}

func TestFinish(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		errs   string
	}{
		{nil, 0, ""},
		{io.ErrUnexpectedEOF, 1, "weir: unexpected EOF\n"},
		{usage(errors.New("which?")), 64, "weir: which?\n"},
		{fmt.Errorf("wrapped: %w", usage(errors.New("which?"))), 64, "weir: which?\n"},
		{statusError{code: exitNoDecision, err: errors.New("weir: nobody answers")}, 2, "weir: nobody answers\n"},
		{statusError{code: exitFailure}, 1, ""},
		{errors.New("key rl-aes1qqqqqq and RL-NONE1ABC, in upper case"), 1, "weir: key rl-aes1[redacted] and rl-NONE1[redacted], in upper case\n"},
	} {
		std, _, errs := testIO("", nil)
		if got := finish(c.err, std); got != c.status || errs.String() != c.errs {
			t.Errorf("finish(%v) = %d and %q, want %d and %q", c.err, got, errs, c.status, c.errs)
		}
	}
}

func TestSignalStatus(t *testing.T) {
	for sig, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		if got := signalStatus(sig); got != want {
			t.Errorf("%v ends with status %d, want %d", sig, got, want)
		}
	}
}
