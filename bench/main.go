// Bench measures the server as its users meet it: as a process, over sockets, beside others. Each
// measurement is a command, and compares within one run on one machine, as times by themselves say
// nothing of another.
//
//	cd bench && go run .                   # how far from the least that a server can cost?
//	cd bench && go run . neighbor          # does an attack slow other tenants down?
//
// With --quick both are done in less than a minute, and rough.
// With --json it prints all it found as JSON. The exit code is 1 when a figure is beyond its gate,
// and 2 when it could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
	{attackCommand, "", attack},
	{onCommand, "", on},
	{spinCommand, "", spin},
	{floorCommand, "", floor},
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
		case errors.Is(err, errGate):
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		case err != nil:
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(2)
		}
		return
	}
	fmt.Fprintln(os.Stderr, "bench: give one of these commands, and --help for its flags:")
	for _, c := range commands {
		if c.about != "" {
			fmt.Fprintf(os.Stderr, "  %-10s %s\n", c.name, c.about)
		}
	}
	os.Exit(2)
}
