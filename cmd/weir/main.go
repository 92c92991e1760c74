// Command weir is distributed admission control on the command line: it issues
// keys, runs r-servers, asks them for decisions and takes their datagrams apart.
// "weir --help" lists the commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a clean end; a second one ends at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], &stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}))
}
