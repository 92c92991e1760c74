// Command weir is distributed admission control on the command line: it issues
// keys, runs r-servers, asks them for decisions and takes their datagrams apart.
// "weir --help" lists the commands.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	// Room for two, so that a second signal on the heels of the first is not lost.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		insisted := untilInsisted(signals, func(sig os.Signal) { cancel(fmt.Errorf("%v signal received", sig)) })
		os.Exit(signalStatus(insisted))
	}()
	os.Exit(run(ctx, os.Args[1:], &stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}))
}
