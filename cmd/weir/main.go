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
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go endOn(signals, cancel)
	os.Exit(run(ctx, os.Args[1:], &stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}))
}

// endOn asks for a clean end at the first signal. A second one ends the process at
// once, and is not lost however soon it follows.
func endOn(signals <-chan os.Signal, cancel context.CancelFunc) {
	<-signals
	cancel()
	<-signals
	os.Exit(exitFailure)
}
