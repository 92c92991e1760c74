package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// supervised are the flags of commands that run until they are stopped.
type supervised struct {
	ExitWithStdin bool `help:"End when standard input ends, for a parent process that may die without a word."`
}

// supervise returns a context that also ends with standard input, if that was
// asked for.
func (s *supervised) supervise(ctx context.Context, std *stdio) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s.ExitWithStdin {
		// The read ends with the pipe or with this process, whichever is first.
		go func() {
			_, _ = io.Copy(io.Discard, std.in)
			cancel()
		}()
	}
	return ctx, cancel
}

// newLog returns the log of a server: one line a message on standard error, in
// format "text" or "json".
func newLog(std *stdio, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(std.err, nil))
	}
	return slog.New(slog.NewTextHandler(std.err, nil))
}

// onHangup calls f on every SIGHUP until the context ends, in one of the tasks. From
// its return on, a SIGHUP does not end the process.
func onHangup(ctx context.Context, tasks *sync.WaitGroup, f func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	tasks.Go(func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				f()
			}
		}
	})
}
