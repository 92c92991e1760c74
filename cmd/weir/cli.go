package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// cli is the command line. Each field is one command in a file of its own.
type cli struct {
	Demo       demoCmd       `cmd:"" help:"Watch Weir at work, on this machine, for a moment."`
	Key        keyCmd        `cmd:"" help:"Issue and inspect API keys."`
	Acquire    acquireCmd    `cmd:"" help:"Ask for admission once."`
	Report     reportCmd     `cmd:"" help:"Report observed latencies."`
	Serve      serveCmd      `cmd:"" help:"Run an r-server."`
	DNS        dnsCmd        `cmd:"" name:"dns" help:"Serve the DNS zone in which clients find the servers."`
	Doctor     doctorCmd     `cmd:"" help:"Find out why there is no decision."`
	Measure    measureCmd    `cmd:"" help:"Measure round trips to the servers."`
	Bench      benchCmd      `cmd:"" help:"Put load on servers, and judge their answers."`
	Sim        simCmd        `cmd:"" name:"sim" help:"Simulate clients and servers, and what goes wrong."`
	Tune       tuneCmd       `cmd:"" help:"Find the request policy that suits a network."`
	Dissect    dissectCmd    `cmd:"" help:"Take datagrams apart, one in hex a line."`
	Completion completionCmd `cmd:"" help:"Print the completion script of a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

const description = `Distributed admission control: ask before you work.

Exit status: 0 done or granted, 1 failed or rejected, 2 no decision, 64 wrong usage.

A key never comes from a flag's value: it is read from WEIR_KEY, from RATELIMITLY_AUTH_KEY, or from a file.`

// stdio is what a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
}

// note tells the user something beside the output, in one line.
func (s *stdio) note(format string, args ...any) {
	// Errors of the client begin with the program's name themselves.
	text := strings.TrimPrefix(redact(fmt.Sprintf(format, args...)), "weir: ")
	// When standard error is gone there is nowhere left to say so.
	_, _ = fmt.Fprintln(s.err, "weir: "+text)
}

// run parses and runs one command line and returns the exit status.
func run(ctx context.Context, args []string, std *stdio) int {
	exited := -1
	parser, err := newParser(std, func(code int) {
		if exited < 0 {
			exited = code
		}
	})
	if err != nil {
		std.note("%v", err)
		return exitFailure
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		// The help was printed. What else is wrong does not matter then.
		return exited
	}
	if err != nil {
		std.note("%v", err)
		std.note("see %s", helpFor(err))
		return exitUsage
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.Bind(std)
	return finish(parsed.Run(), std)
}

// newParser builds the command line's parser. exit is called after the help was
// printed and may return.
func newParser(std *stdio, exit func(int)) (*kong.Kong, error) {
	return kong.New(&cli{},
		kong.Name("weir"),
		kong.Description(description),
		kong.Writers(std.out, std.err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
}

// finish prints a command's error, if there is one to print, and returns the
// exit status.
func finish(err error, std *stdio) int {
	if err == nil {
		return exitOK
	}
	status := statusError{code: exitFailure, err: err}
	errors.As(err, &status)
	if status.err != nil {
		std.note("%v", status.err)
	}
	return status.code
}

// helpFor names the help that fits a wrong command line.
func helpFor(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
		return parse.Context.Selected().FullPath() + " --help"
	}
	return "weir --help"
}

// keyText matches an API key, whose text is redacted in whatever is printed to
// the user: a key that was typed in the wrong place must not end up in a log.
var keyText = regexp.MustCompile(`(?i)\brl-(none|cookie|aes)1[0-9a-z]+`)

func redact(s string) string {
	return keyText.ReplaceAllString(s, "rl-${1}1[redacted]")
}
