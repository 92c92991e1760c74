package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/conformance/runner"
)

type flags struct {
	Run         string   `placeholder:"REGEX" help:"Play the cases whose names match."`
	JSON        bool     `help:"Write a line of JSON for each case."`
	List        bool     `help:"Write the names of the cases that are played in real time, and play none."`
	Core        bool     `help:"Play every trace with Weir's core in virtual time, and every key with its parser; no client."`
	Parallel    int      `default:"8" help:"How many cases are played at a time."`
	Attempts    int      `default:"3" help:"How often a case is played until it passes; the later ones have the machine to themselves."`
	AllowReseal bool     `help:"Take a client that seals every send anew."`
	Command     []string `arg:"" optional:"" passthrough:"" help:"The adapter, and its arguments."`
}

// run does what the arguments say, and reports whether all is well.
func run(ctx context.Context, args []string, out, errs io.Writer) (conforms bool, err error) {
	var f flags
	parser, err := kong.New(&f, kong.Name("weir-conformance"), kong.Writers(out, errs), kong.Exit(func(int) {}),
		kong.Description("Plays traces with a client of any language, as a child process (conformance/README.md)."))
	if err != nil {
		return false, err
	}
	if _, err := parser.Parse(args); err != nil {
		return false, err
	}
	match, err := regexp.Compile(f.Run)
	if err != nil {
		return false, fmt.Errorf("--run: %w", err)
	}
	switch {
	case len(f.Command) == 0:
	case f.Command[0] == "--":
		f.Command = f.Command[1:]
	case strings.HasPrefix(f.Command[0], "-"):
		return false, fmt.Errorf("unknown flag %s", f.Command[0])
	}
	switch {
	case f.List:
		return list(out, match)
	case f.Core:
		return playCore(out, match)
	case len(f.Command) == 0:
		return false, errors.New("name the adapter, as in weir-conformance -- python3 adapter.py; --core needs none, and --help tells the rest")
	}
	return playClient(ctx, &f, match, out, errs)
}

func list(out io.Writer, match *regexp.Regexp) (bool, error) {
	names, err := runner.Names()
	for _, n := range names {
		if match.MatchString(n) {
			fmt.Fprintln(out, n)
		}
	}
	return err == nil, err
}

// playCore plays traces with the core, exactly, and keys with the parser.
func playCore(out io.Writer, match *regexp.Regexp) (bool, error) {
	traces, err := conformance.Traces()
	if err != nil {
		return false, err
	}
	keys, err := conformance.Keys()
	if err != nil {
		return false, err
	}
	failed := 0
	judge := func(name string, check func() error) (played int) {
		if !match.MatchString(name) {
			return 0
		}
		if err := check(); err != nil {
			failed++
			fmt.Fprintf(out, "FAIL         %s: %v\n", name, err)
		}
		return 1
	}
	playedTraces, playedKeys := 0, 0
	for i := range traces {
		playedTraces += judge(traces[i].Name, func() error { return runner.CheckCore(&traces[i]) })
	}
	for i := range keys {
		playedKeys += judge(runner.KeyCaseName(&keys[i]), func() error { return runner.CheckKey(&keys[i]) })
	}
	fmt.Fprintf(out, "the core: %d traces and %d keys, %d failed\n", playedTraces, playedKeys, failed)
	return playedTraces+playedKeys > 0 && failed == 0, nil
}

func playClient(ctx context.Context, f *flags, match *regexp.Regexp, out, errs io.Writer) (bool, error) {
	clients := runner.NewProcesses(errs, f.Command[0], f.Command[1:]...)
	defer clients.End()
	began := time.Now()
	var broken error // of the output
	summary, err := runner.Run(ctx, runner.Config{
		Start: clients.Start, Match: match, Parallel: f.Parallel, Attempts: f.Attempts, AllowReseal: f.AllowReseal,
		Done: func(r runner.Result) {
			write := runner.WriteResult
			if f.JSON {
				write = runner.WriteJSON
			}
			broken = errors.Join(broken, write(out, &r))
		},
	})
	if err != nil {
		return false, err
	}
	if !f.JSON {
		broken = errors.Join(broken, runner.WriteSummary(out, &summary, time.Since(began)))
	}
	return summary.Conforms() && broken == nil, broken
}
