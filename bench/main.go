// Bench measures the server as its users meet it: as a process, over sockets, beside others. Each
// measurement is a command, and compares within one run on one machine, as times by themselves say
// nothing of another.
//
//	cd bench && go run .                   # how far from the least that a server can cost?
//	cd bench && go run . workers           # do workers wait for each other?
//	cd bench && go run . growth            # what do millions of buckets cost?
//	cd bench && go run . neighbor          # does an attack slow other tenants down?
//
// With --quick each is done in less than a minute, and rough.
// With --json it prints all it found as JSON. The exit code is 1 when a figure is beyond its gate,
// and 2 when it could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// errGate says that a measurement was made and a figure is beyond its gate.
var errGate = errors.New("beyond the gate")

// onCommand is the command of a child that becomes another program on some processors only.
const onCommand = "on"

// floorCommand is the command of a child that is the least that a server can be.
const floorCommand = "floor"

// compareCommand is what this program does without one.
const compareCommand = "compare"

// commands are the measurements. Those without a description are children of others.
var commands = []struct {
	name, about string
	run         func(ctx context.Context, args []string) error
}{
	{compareCommand, "the server beside the least that a server can cost", compare},
	{"neighbor", "a tenant's latencies alone, and while another attacks", neighbor},
	{workersCommand, "how long workers wait for a lock, and how an uneven load becomes even", workers},
	{growthCommand, "latencies while millions of buckets come, expire and come again", growth},
	{chartCommand, "a picture of what the comparison found", chart},
	{attackCommand, "", attack},
	{onCommand, "", on},
	{spinCommand, "", spin},
	{floorCommand, "", floor},
	{insideCommand, "", inside},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name, args := compareCommand, os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	for _, c := range commands {
		if c.name != name {
			continue
		}
		switch err := c.run(ctx, args); {
		case errors.Is(err, flag.ErrHelp):
			if name == compareCommand {
				fmt.Println("\nThis is what is done without a command. All commands, each with --help:")
				listCommands(os.Stdout)
			}
		case errors.Is(err, errGate):
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		case err != nil:
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(2)
		}
		return
	}
	fmt.Fprintf(os.Stderr, "bench: there is no command %q; give one of these, and --help for its flags:\n", name)
	listCommands(os.Stderr)
	os.Exit(2)
}

// listCommands writes what each of the measurements is about.
func listCommands(w io.Writer) {
	for _, c := range commands {
		if c.about != "" {
			fmt.Fprintf(w, "  %-10s %s\n", c.name, c.about)
		}
	}
}

// readFlags reads a command's flags. Help goes to standard output; what is wrong is said once, by the caller.
func readFlags(f *flag.FlagSet, args []string) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags := 0
		f.VisitAll(func(*flag.Flag) { flags++ })
		if flags > 0 {
			var text strings.Builder
			f.SetOutput(&text)
			f.PrintDefaults()
			fmt.Printf("Flags of %s:\n%s", f.Name(), strings.ReplaceAll("\n"+text.String(), "\n  -", "\n  --")[1:])
		}
	case err != nil:
		return fmt.Errorf("%w; %s --help has the flags", err, f.Name())
	}
	return err
}
