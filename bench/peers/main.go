package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	const seldom = 800 // in percent: what this program collects, the servers pay for
	debug.SetGCPercent(seldom)
	if err := serve(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// serve does one job.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var job Job
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&job); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	result, err := do(ctx, &job)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
