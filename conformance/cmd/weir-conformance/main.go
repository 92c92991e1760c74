// Command weir-conformance plays the traces of package conformance with a client of
// any language, as a child process that speaks the line protocol of
// conformance/README.md:
//
//	weir-conformance -- python3 conformance/adapter/python/adapter.py
//
// It exits with 0 if everything passed that the client says it can do, else with 1.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	conforms, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !conforms {
		os.Exit(1)
	}
}
